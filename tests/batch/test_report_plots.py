"""Plots of the report as SVG."""

from xml.etree import ElementTree

from panpan.batch.reporting.figures import Rate, Spread
from panpan.batch.reporting.report_plots import fitted, histogram, rate_plot

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_rate_plot_draws_a_point_and_an_interval_for_each_value() -> None:
    plot = parsed(rate_plot("seed", {"1": Rate(1, 2), "2": Rate(2, 2), "3": Rate(0, 0)}))

    points = [float(one.attrib["cx"]) for one in plot.iter(f"{SVG}circle")]
    intervals = [one for one in plot.iter(f"{SVG}line") if one.get("class") == "interval"]
    assert points == [170.0, 332.0]
    assert len(intervals) == len(points)
    assert plot.attrib["aria-label"] == (f"Passed by seed. 1: {Rate(1, 2).words}; 2: {Rate(2, 2).words}; 3: not judged")


def test_plots_escape_hostile_names() -> None:
    name = '"><script>alert(1)</script>\x1b[31m'

    plot = parsed(rate_plot(name, {name: Rate(1, 1), "b": Rate(0, 1)}))

    assert plot.attrib["aria-label"].startswith('Passed by "><script>alert(1)</script>. "><script>alert(1)</script>:')
    assert not [*plot.iter(f"{SVG}script")]


def test_histogram_says_what_it_draws() -> None:
    plot = parsed(histogram("Cost", Spread([1.0, 2.0, 2.0, 3.0]), lambda value: f"${value:.0f}"))

    assert plot.attrib["aria-label"] == ("Cost. 4 attempts from $1 to $3; median $2, half of them between $2 and $2")
    heights = sorted(float(bar.attrib["height"]) for bar in plot.iter(f"{SVG}rect"))
    assert heights == [48.0, 48.0, 96.0]


def test_histogram_of_one_value_is_one_bar() -> None:
    plot = parsed(histogram("Cost", Spread([2.0]), lambda value: f"${value:.0f}"))

    assert len([*plot.iter(f"{SVG}rect")]) == 1


def test_long_label_loses_its_middle() -> None:
    assert fitted("papers/attention.pdf", 11) == "paper…n.pdf"
    assert fitted("short", 5) == "short"
    assert fitted("論文論文論文", 7) == "論文…文"
