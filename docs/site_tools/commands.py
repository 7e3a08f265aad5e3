"""The command reference: every command with what its `--help` says, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer import Context
from typer.main import get_command

from neuroseqret.cli.main import app

PROGRAM = "neuroseqret"


def reference() -> str:
    """Return the reference of all commands."""
    context = Context(get_command(app), info_name=PROGRAM)
    return "\n\n".join(_section(one) for one in commands_below(context))


def commands_below(context: Any) -> Iterator[Any]:
    """Yield the context of every command that does something, in the order of the help."""
    command = context.command
    if not hasattr(command, "list_commands"):
        yield context
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from commands_below(Context(below, info_name=name, parent=context))


def _section(context: Any) -> str:
    command = context.command
    command.get_help(context)  # fills in names that are looked up only when the help is printed
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## `{context.command_path}`", _text(command.help or ""), f"```text\n{usage}\n```"]
    for kind in ("argument", "option"):
        shown = [one for one in command.params if one.param_type_name == kind and one.name != "help"]
        rows = [_row(*record) for record in (one.get_help_record(context) for one in shown) if record]
        if rows:
            parts.append("\n".join([f"| {kind} | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _row(names: str, said: str) -> str:
    cell = " ".join(_text(said).split()).replace("|", "\\|")
    return f"| `{names.strip('{}')}` | {cell} |"


def _text(help_text: str) -> str:
    """Return plain help text as Markdown: what looks like markup is escaped, options and commands become code.

    An option takes its value along (`--column id=USER`), and what stands in quotes needs them no more.
    """
    text = re.sub(r"([\\*_\[])", r"\\\1", help_text.replace("\b\n", "")).replace("<", "&lt;")
    code = r"'((?:neuroseqret |--)[^']+)'|(?<![\w-])(--[a-z][\w-]*(?: \w+=\w+)?)"
    return re.sub(code, lambda found: f"`{found[1] or found[2]}`", text)
