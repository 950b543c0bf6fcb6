"""Words for tasks, in two disjoint sets: one for development, one for the figures.

Prompts, examples and tool descriptions of a model are improved by looking at the development set. The figures come from
the other set, whose failures nobody looks at one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A little program to write: its task, and its output for a number."""

    wording: str
    expected: str
    """Python expression of n that gives the lines of output."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A function with one wrong line, and a check that shows it."""

    module: str
    wrong: str
    check: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One set of words."""

    nouns: tuple[str, ...]
    values: tuple[str, ...]
    functions: tuple[str, ...]
    folders: tuple[str, ...]
    wordings: Mapping[str, tuple[str, ...]]
    """Wordings by kind of task."""
    programs: tuple[Program, ...]
    bugs: tuple[Bug, ...]


DEVELOPMENT = Vocabulary(
    nouns=("apple", "river", "candle", "engine", "garden", "ticket", "window", "marble", "copper", "violin"),
    values=("blue", "seventeen", "Lisbon", "granite", "monday", "walnut", "silver", "echo", "harbour", "ninety"),
    functions=("load_rows", "area", "greet", "parse_line", "total", "find_max", "to_upper", "clean", "merge", "score"),
    folders=("src", "lib", "core", "app"),
    wordings={
        "read": (
            "What is the {key} in {file}?",
            "Look into {file} and tell me the {key}.",
            "Which value does {file} give for {key}?",
            "please check {file}: what {key} is set there",
        ),
        "create": (
            "Create a file {file} that contains the line: {text}",
            "Make a new file called {file} with the text {text}",
            "I need a file {file}. Its only line should be {text}",
            "write {text} into a new file {file}",
        ),
        "replace": (
            "In {file}, replace {old} with {new}.",
            "Change {old} to {new} in {file}",
            "The word {old} in {file} should be {new}. Please correct it.",
            "{file} says {old}; make it say {new}",
        ),
        "list": (
            "Which files are in the folder {folder}?",
            "List the files in {folder}.",
            "What is in the directory {folder}? Give me the file names.",
            "show me all files of {folder}",
            "what's inside {folder}?",
            "I need the names of everything under {folder}/.",
            "ls {folder}",
            "Tell me what {folder} holds",
        ),
        "count": (
            "How many lines does {file} have?",
            "Count the lines of {file}.",
            "Tell me the number of lines in {file}",
            "{file}: how many lines are there?",
        ),
        "rename": (
            "Rename the function {old} to {new} in {first} and {second}.",
            "The function {old} should be called {new}. Change it in {first} and in {second}.",
            "rename {old} to {new}; it is defined in {first} and used in {second}",
            "Please give the function {old} the new name {new}, in both {first} and {second}",
            "{old} is a bad name. {first} and {second} should say {new} instead.",
            "use {new} in place of the function name {old} ({first}, {second})",
            "{first} has a function {old}, which {second} imports; it must be called {new}",
            "Files {first} and {second}: {old}() has to become {new}().",
        ),
        "search": (
            "Which file defines {symbol}?",
            "Find the file where {symbol} is defined.",
            "Where is {symbol} defined? Tell me the file.",
            "look for {symbol} and say which file it is in",
        ),
        "append": (
            "Add the line {text} at the end of {file}.",
            "Append {text} to {file}",
            "{file} needs one more line at the end: {text}",
            "put {text} as a new last line into {file}",
            "{text} should come last in {file}",
            "Please extend the list in {file} with {text}.",
            "write one line more into {file}, it says {text}",
            "At the bottom of {file}, insert a line with {text}.",
        ),
        "script": (
            "Write a Python script {file} that {job}. Then run it.",
            "Create {file}, a Python program that {job}, and run it to see the output.",
            "I want a script {file} which {job}. Run it when it is written.",
            "make {file}: it {job}. then execute it with python3",
        ),
        "fix_bug": (
            "python3 {check} fails. Fix the bug in {file}.",
            "The check {check} does not pass; the mistake is in {file}. Correct it.",
            "There is a bug in {file}: run python3 {check} to see it, then fix it.",
            "fix {file} so that python3 {check} works",
        ),
    },
    programs=(
        Program(
            "prints the squares of the numbers from 1 to {n}, one on each line", "[i * i for i in range(1, n + 1)]"
        ),
        Program("prints the numbers from {n} down to 1, one on each line", "list(range(n, 0, -1))"),
        Program("prints the sum of all numbers from 1 to {n}", "[sum(range(n + 1))]"),
        Program("prints the first {n} multiples of 7, one on each line", "[7 * i for i in range(1, n + 1)]"),
        Program("prints the word hello {n} times, one on each line", "['hello'] * n"),
    ),
    bugs=(
        Bug("def area(width, height):\n    return width * height\n", "width + height", "area(3, 5) == 15"),
        Bug("def last(items):\n    return items[-1]\n", "items[0]", "last([4, 8, 9]) == 9"),
        Bug("def is_even(n):\n    return n % 2 == 0\n", "n % 2 == 1", "is_even(6) and not is_even(3)"),
        Bug("def average(xs):\n    return sum(xs) / len(xs)\n", "sum(xs) / 2", "average([1, 2, 6]) == 3"),
        Bug(
            "def full_name(first, last):\n    return first + ' ' + last\n",
            "first + last",
            "full_name('A', 'B') == 'A B'",
        ),
    ),
)

COUNTED = Vocabulary(
    nouns=("planet", "basket", "signal", "ladder", "meadow", "pocket", "thunder", "bottle", "feather", "lantern"),
    values=("crimson", "forty", "Osaka", "velvet", "thursday", "cedar", "amber", "zenith", "canyon", "eleven"),
    functions=(
        "read_table",
        "volume",
        "welcome",
        "split_words",
        "mean",
        "smallest",
        "shorten",
        "trim",
        "join_all",
        "rank",
    ),
    folders=("data", "tools", "pkg", "module"),
    wordings={
        "read": (
            "Could you tell me what value {file} lists for {key}?",
            "I need the value of {key}. It is recorded in {file}.",
            "hey, what did I put down for {key} in {file}",
            "get me the {key} from {file}",
        ),
        "create": (
            "We are missing a file {file}. Please produce it, with this as its entire content: {text}",
            "hey, can you set up a file called {file} with just one line in it: {text}",
            'put "{text}" in a fresh file and name that {file}',
            "new file {file}, content: {text}",
        ),
        "replace": (
            "Kindly update {file}: every occurrence of {old} must be turned into {new}.",
            "Can you get rid of {old} in {file} and use {new} there instead?",
            "oops, I typed {old} in {file} but I meant {new}. can you fix that?",
            "update {file}, {new} instead of {old}",
        ),
        "list": (
            "Please enumerate the files located in the {folder} directory.",
            "Could you go through the {folder} directory and report each file you see there?",
            "I'm new here, what does the {folder} folder hold? every file name, please",
            "{folder} contents, file names only",
        ),
        "count": (
            "Please determine how many lines {file} consists of.",
            "Could you check the size of {file} for me? I mean its number of lines.",
            "so how many lines did {file} end up with?",
            "line total for {file}?",
        ),
        "rename": (
            "The function {old} will be known as {new} henceforth. Please update {first} and {second}.",
            "The function in {first} is called {old} but {new} is clearer. Rename it there and in {second} too.",
            "can you rename my {old} function? new name is {new}, files are {first} and {second}",
            "{old} to {new}: function rename, affects {first} and {second}",
        ),
        "search": (
            "I am trying to locate the file in which {symbol} is assigned its value. Which one is it?",
            "Someone asked me where {symbol} comes from. Please give me the name of the file that introduces it.",
            "hey, I can't find where we set {symbol}, which file is that in?",
            "{symbol}: need the name of the file it's declared in",
        ),
        "append": (
            "Please insert a line at the very end of {file} that reads: {text}",
            "Leave the existing lines of {file} as they are and have this one follow them: {text}",
            "hey, can you tack {text} onto the end of {file}? it goes on a line of its own",
            "{text} goes on a new line at the bottom of {file}",
        ),
        "script": (
            "I need a short Python program that {job}. Please store it as {file} and execute it afterwards.",
            "Could you code something in Python that {job}? Put it into {file}, then run that so I know it works.",
            "hey, can you whip up a python script that {job}? call it {file} and give it a run",
            "new script {file} (python) that {job}. write it and run it",
        ),
        "fix_bug": (
            "When I run python3 {check}, I get an error. The cause lies in {file}; please resolve it.",
            "Our test script {check} reports a failure. Please find the faulty line of {file} and put it right.",
            "hey, {file} has a bug somewhere and {check} keeps failing, can you sort it out?",
            "debug {file} until python3 {check} passes",
        ),
    },
    programs=(
        Program("prints the cubes of the numbers from 1 to {n}, one per line", "[i ** 3 for i in range(1, n + 1)]"),
        Program("prints the odd numbers from 1 up to {n}, one per line", "list(range(1, n + 1, 2))"),
        Program("prints the product of all whole numbers from 1 to {n}", "[__import__('math').factorial(n)]"),
        Program("prints the powers of two from 2**0 to 2**{n}, one per line", "[2 ** i for i in range(n + 1)]"),
        Program("prints the line 'ready' {n} times", "['ready'] * n"),
    ),
    bugs=(
        Bug("def volume(a, b, c):\n    return a * b * c\n", "a * b + c", "volume(2, 3, 4) == 24"),
        Bug("def first_letter(word):\n    return word[0]\n", "word[1]", "first_letter('tree') == 't'"),
        Bug("def is_positive(n):\n    return n > 0\n", "n < 0", "is_positive(3) and not is_positive(-3)"),
        Bug("def to_minutes(hours):\n    return hours * 60\n", "hours * 100", "to_minutes(2) == 120"),
        Bug("def smaller(a, b):\n    return min(a, b)\n", "max(a, b)", "smaller(3, 8) == 3"),
    ),
)

SETS = {"development": DEVELOPMENT, "counted": COUNTED}
