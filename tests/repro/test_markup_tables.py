"""Tables of Markdown, HTML and LaTeX."""

from panpan.repro.papers.latex_tables import latex_tables, plain_tex
from panpan.repro.papers.page_tables import html_tables, markdown_tables
from panpan.repro.papers.paper_table import PaperTable


def numbers_of(table: PaperTable) -> dict[str, tuple[str, ...]]:
    return {row.label: row.cells for row in table.rows}


README = """\
# Robust means

Text with 83.1% in it.

## Results

| Method | Acc (%) | Time |
|---|---:|---|
| Mean | 81.2 ± 0.3 | 3 s |
| **Ours**<sup>a</sup> | **83.1** ± 0.2 | `1,234.5` s |

| Option | Meaning |
|---|---|
| `-q` | quiet |

<table><tr><th>n</th><th>Error</th></tr><tr><td>10</td><td>0.5</td></tr></table>
"""


def test_readme_has_tables_named_by_their_heading() -> None:
    found = markdown_tables(README)
    first, second = found.tables
    assert (found.title, first.name, first.columns) == ("Robust means", "Results", ("Acc (%)", "Time"))
    assert numbers_of(first) == {"Mean": ("81.2 ± 0.3", "3 s"), "Ours^{a}": ("83.1 ± 0.2", "1,234.5 s")}
    assert (second.columns, numbers_of(second)) == (("Error",), {"10": ("0.5",)})


def test_caption_in_a_paragraph_names_the_table() -> None:
    (table,) = markdown_tables("Table 2: Errors.\n\n| n | e |\n|---|---|\n| a | 0.5 |\n").tables
    assert (table.name, table.caption) == ("Table 2", "Table 2: Errors.")


def test_brackets_in_the_row_below_belong_to_numbers() -> None:
    text = "| m | A | B |\n|---|---|---|\n| Slope | 1.2** | 3 |\n| | (0.1) | |\n| N | 10 | 20 |\n"
    (table,) = markdown_tables(text).tables
    assert numbers_of(table) == {"Slope": ("1.2** (0.1)", "3"), "N": ("10", "20")}


def test_captions_below_tables_are_their_own() -> None:
    table = "<table><tr><th>m<th>e</tr><tr><td>a<td>{}</tr></table><p>Table {}: Errors.</p>"
    found = html_tables(
        f"<h1>T</h1>{table.format(1.5, 1)}{table.format(2.5, 2)}<p>Text</p>{table.format(3.5, 3)}"
    ).tables
    assert [(one.name, one.rows[0].cells) for one in found] == [
        ("Table 1", ("1.5",)),
        ("Table 2", ("2.5",)),
        ("Table 3", ("3.5",)),
    ]


def test_caption_before_other_text_names_no_table() -> None:
    text = "Table 9: Elsewhere.\n\nSome text.\n\n| m | e |\n|---|---|\n| a | 0.5 |\n"
    (table,) = markdown_tables(text).tables
    assert (table.name, table.caption) == ("table 1", "")


PAGE = """\
<html><head><title>A page</title></head><body><script>var x = "<table>";</script>
<figure><figcaption>Table 3: Things</figcaption>
<table><thead><tr><th rowspan=2>Method</th><th colspan=2>CIFAR</th></tr><tr><th>Acc.</th><th>F1</th></tr></thead>
<tr><td rowspan="2">Mean</td><td><math alttext="83.1\\pm 0.3"><mn>83.1</mn></math></td><td>5</td></tr>
<tr><td>1.5</td><td>2.5</td></tr>
<tr><td colspan=3>More data</td></tr>
<tr><td>Huber</td><td>1.2<sup>*</sup></td><td>-</td></tr>
<tr hidden><td>Secret</td><td>6</td><td>7</td></tr></table></figure>
<table><tr><td>a layout</td><td>
<table><tr><th>k</th><th>v</th></tr><tr><td>x</td><td>9</td></tr></table></td></tr></table>
"""


def test_page_has_its_spans_formulas_and_captions() -> None:
    first, second = html_tables(PAGE).tables
    assert (first.name, first.columns) == ("Table 3", ("CIFAR Acc.", "CIFAR F1"))
    assert [(row.label, row.cells) for row in first.rows] == [
        ("Mean", ("83.1± 0.3", "5")),
        ("Mean", ("1.5", "2.5")),
        ("More data / Huber", ("1.2^{*}", "-")),
    ]
    assert numbers_of(second) == {"x": ("9",)}


def test_page_with_endless_spans_is_bounded() -> None:
    rows = "<tr><td colspan=99999999>a</td><td rowspan=1000000000>1</td></tr>" * 2_000
    tables = html_tables(f"<table><tr><th>a<th>b</tr>{rows}</table>").tables
    assert all(len(table.rows) <= 500 and len(table.columns) <= 60 for table in tables)


def test_page_without_tables_has_none() -> None:
    assert html_tables("").tables == ()
    assert html_tables("<p>83.1").tables == ()
    assert markdown_tables("").tables == ()


PAPER = r"""
\title{Robust \emph{means}}
\begin{table}[t]\centering
\caption{Accuracy (\%) on the \textbf{test} set~\cite{x}. Mean $\pm$ std.}\label{tab:a}
\begin{tabular}{@{}lcc|c@{}}
\toprule
\multirow{2}{*}{Method} & \multicolumn{2}{c}{CIFAR-10} & SVHN \\ \cmidrule(lr){2-3}
 & Acc.~$\uparrow$ & F1 & Acc. \\ \midrule
Mean & 81.2{\scriptsize $\pm$0.3} & 80.0 & 91.5 \\[2pt] % & 3 \\
Trimmed$^{a}$ & $\mathbf{83.1 \pm 0.2}$ & \textbf{82.7}$^\dagger$ & 92.0\% \\
\multicolumn{4}{l}{\textit{With more data}} \\
Huber \& co & $1.2\times10^{-3}$ & 84{,}100 & $-0.5$ \\
\bottomrule
\end{tabular}
\end{table}
\begin{table}\begin{tabular}{ll} a & b \\ \end{tabular}\end{table}
\begin{table*}\caption{Errors}\begin{tabularx}{\textwidth}{lX} n & e \\ \hline x & 0.5 \\ \end{tabularx}\end{table*}
"""


def test_latex_has_its_tables_numbered() -> None:
    found = latex_tables(PAPER)
    first, second = found.tables
    assert (found.title, first.name, second.name) == ("Robust means", "Table 1", "Table 3")
    assert first.caption.startswith("Table 1: Accuracy (%) on the test set")
    assert first.columns == ("CIFAR-10 Acc. ↑", "CIFAR-10 F1", "SVHN Acc.")
    assert numbers_of(first) == {
        "Mean": ("81.2±0.3", "80.0", "91.5"),
        "Trimmed^{a}": ("83.1 ± 0.2", "82.7^{†}", "92.0%"),
        "With more data / Huber & co": ("1.2\u00d710^{-3}", "84,100", "-0.5"),
    }
    assert numbers_of(second) == {"x": ("0.5",)}


def test_latex_cells_of_several_rows_cover_empty_ones() -> None:
    text = r"""\begin{table}\begin{tabular}{lll} D & M & E \\
    \multirow{2}{*}{SVHN} & Mean & 1.5 \\ & Huber & 2.5 \\ Cora & Mean & 3.5 \\ \end{tabular}\end{table}"""
    (table,) = latex_tables(text).tables
    assert numbers_of(table) == {"SVHN / Mean": ("1.5",), "SVHN / Huber": ("2.5",), "Cora / Mean": ("3.5",)}


def test_damaged_latex_ends() -> None:
    assert latex_tables(r"\begin{table}" * 2_000 + "{" * 20_000).tables == ()
    assert plain_tex("{" * 50_000) == ""
    assert plain_tex("$x_1^2$") == "x_{1}^{2}"
