"""The kinds of nodes in syntax trees of bash, and what the odd ones are called before the user.

The rule: a kind that is not listed is odd, so that whatever the grammar learns is asked about first. The names are
those of tree-sitter-bash 0.25, `src/node-types.json`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_PLAIN_KINDS = frozenset({
    "ansi_c_string", "binary_expression", "brace_expression", "command", "command_name", "comment",
    "compound_statement", "concatenation", "declaration_command", "expansion", "extglob_pattern", "file_descriptor",
    "file_redirect", "list", "negated_command", "number", "parenthesized_expression", "pipeline", "program",
    "raw_string", "redirected_statement", "regex", "simple_expansion", "special_variable_name", "string",
    "string_content", "subshell", "test_command", "test_operator", "unary_expression", "unset_command",
    "variable_assignment", "variable_name", "word",
})  # fmt: skip
"""Plain, or judged below."""

_ODD_KINDS = {
    "arithmetic_expansion": "arithmetic",
    "array": "an array",
    "c_style_for_statement": "a loop",
    "case_statement": "a case",
    "command_substitution": "a command substitution",
    "for_statement": "a loop",
    "function_definition": "a function",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "if_statement": "an if",
    "process_substitution": "a process substitution",
    "translated_string": "a translated string",
    "while_statement": "a loop",
}
_PARTS_OF_ODD = frozenset({
    "case_item", "do_group", "elif_clause", "else_clause", "heredoc_body", "heredoc_content", "heredoc_end",
    "heredoc_start", "postfix_expression", "subscript", "ternary_expression", "variable_assignments",
})  # fmt: skip
"""Only ever part of something odd, and named there."""

_LOOKED_UP = frozenset({"${", "}", "variable_name", "special_variable_name"})
"""What an expansion in braces consists of where it does nothing but look up."""


def oddity_of(node: "Node") -> str | None:
    """Return what a node is called if it is odd by its kind; None where it is plain, or part of something odd."""
    kind = node.type
    if not node.is_named:
        return "a command in the background" if kind == "&" else None
    if kind in _PLAIN_KINDS or kind in _PARTS_OF_ODD:
        if kind == "expansion" and any(child.type not in _LOOKED_UP for child in node.children):
            return "an expansion that does more than look up"
        if kind == "compound_statement" and node.children[0].type == "((":
            return "arithmetic"
        return None
    return _ODD_KINDS.get(kind, f"a {kind.replace('_', ' ')}")
