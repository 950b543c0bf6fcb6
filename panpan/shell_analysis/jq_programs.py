"""Programs of jq that only compute (jq(1), version 1.8).

The rule: each word of a program is a function that is listed here, or the name of a field or a variable. Modules and
what asks about them, which read further files, are not.
"""

import re

_FUNCTIONS = frozenset({
    "IN", "INDEX", "GROUP_BY", "UNIQUE_BY", "abs", "add", "all", "any", "arrays", "ascii", "ascii_downcase",
    "ascii_upcase", "booleans", "bsearch", "builtins", "capture", "ceil", "combinations", "contains", "debug",
    "del", "delpaths", "empty", "endswith", "env", "error", "explode", "fabs", "finites", "first", "flatten",
    "floor", "format", "from_entries", "fromdate", "fromdateiso8601", "fromjson", "fromstream", "getpath", "gmtime",
    "group_by", "gsub", "halt", "halt_error", "has", "have_decnum", "have_literal_numbers", "implode", "in",
    "index", "indices", "infinite", "input", "input_filename", "input_line_number", "inputs", "inside", "isempty",
    "isinfinite", "isnan", "isnormal", "isvalid", "iterables", "join", "keys", "keys_unsorted", "last",
    "leaf_paths", "length", "limit", "localtime", "log", "log10", "log2", "ltrimstr", "ltrim", "map", "map_values",
    "match", "max", "max_by", "min", "min_by", "mktime", "nan", "normals", "not", "now", "nth", "null", "nulls",
    "numbers", "objects", "path", "paths", "pick", "pow", "range", "recurse", "repeat", "reverse", "rindex",
    "round", "rtrimstr", "rtrim", "scalars", "scan", "select", "setpath", "skip", "sort", "sort_by", "split",
    "splits", "sqrt", "startswith", "stderr", "strflocaltime", "strftime", "strings", "strptime", "sub", "test",
    "toarray", "toboolean", "to_entries", "todate", "tojson", "tonumber", "tostream", "tostring", "transpose",
    "trim", "trimstr", "true", "false", "trunc", "truncate_stream", "type", "unique", "unique_by", "until",
    "utf8bytelength", "values", "walk", "while", "with_entries", "and", "or", "then", "elif", "else",
    "as", "reduce", "foreach", "try", "catch", "label", "break",
})  # fmt: skip
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\n]+) | (?P<open>[(\[{]|if\b) | (?P<close>[)\]}]|end\b) | (?P<quote>")
      | (?P<name>[A-Za-z_]\w*)
      | (?:\.[A-Za-z_]\w*|\$[A-Za-z_]\w*|@[a-z0-9]+|[0-9]+(?:\.[0-9]+)?|[-.|,:;?+*/%=<>!])""",
    re.VERBOSE | re.ASCII,
)
_IN_STRING = re.compile(r'(?P<text>(?:[^"\\]|\\["\\/bfnrtu])+)|(?P<open>\\\()|(?P<quote>")')
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\(": ")", "if": "end"}


def only_computes(program: str) -> bool:
    """True if the program reads nothing but its input."""
    around: list[str] = []
    """Brackets, strings and expressions in strings that are open here."""
    at, before = 0, ""
    while at < len(program):
        found = (_IN_STRING if around[-1:] == ['"'] else _TOKEN).match(program, at)
        if found is None:
            return False
        at, token = found.end(), found[0]
        match found.lastgroup:
            case "blank":
                continue
            case "open":
                around.append(token)
            case "close":
                if not around or _CLOSING[around.pop()] != token:
                    return False
            case "quote" if around[-1:] == ['"']:
                around.pop()
            case "quote":
                around.append(token)
            case "name":
                is_key = around[-1:] == ["{"] and before in ("{", ",")
                if not is_key and token not in _FUNCTIONS:
                    return False
        before = token
    return not around
