"""Read Markdown pages of this repository, and run their code blocks."""

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from spacy_bioclin.cli import app

ROOT = Path(__file__).parents[1]
# What an example prints when it shows nothing: a count of 0.
NOTHING = re.compile(r"0 (?!of \d).*")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced code block.

    language (str): What follows the opening fence.
    content (str): The text between the fences.
    line (int): Number of its first line in the page, from 1.
    """

    language: str
    content: str
    line: int


def code_blocks(page: str) -> list[Block]:
    """Find the fenced code blocks of a page."""
    return [
        Block(match[1], match[2], page.count("\n", 0, match.start()) + 2)
        for match in BLOCK.finditer(page)
    ]


def shell_commands(block: str, program: str) -> Iterator[list[str]]:
    """Find the commands of a shell block, with or without a prompt `$`, that call one program.

    block (str): Content of the block.
    program (str): First word or words of the command, such as "spacy train".
    YIELDS (list[str]): The arguments of one command.
    """
    wanted = program.split()
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(os.path.expandvars(line.removeprefix("$ ")), comments=True)
        if words[: len(wanted)] == wanted:
            yield words[len(wanted) :]


def run_block(block: Block, page: str, namespace: dict[str, object]) -> str:
    """Run a ```python block, or the `bioclin` commands of a ```bash block, in this process.

    No line that a Python block prints may show nothing ("0 spans in 1090 characters").

    block (Block): The block. Blocks of other languages are ignored.
    page (str): Name of the page, for error messages.
    namespace (dict): Variables that the Python blocks of one page share.
    RETURNS (str): What a Python block printed.
    """
    printed = io.StringIO()
    if block.language == "python":
        code = compile("\n" * (block.line - 1) + block.content, page, "exec")
        with redirect_stdout(printed):
            exec(code, namespace)
        for line in printed.getvalue().splitlines():
            assert not NOTHING.fullmatch(line), f"{page}, line {block.line}: prints {line!r}"
    elif block.language == "bash":
        for args in shell_commands(block.content, "bioclin"):
            result = CliRunner().invoke(app, args)
            where = f"{page}, line {block.line}: bioclin {shlex.join(args)}"
            assert result.exit_code == 0, f"{where}\n{result.output}"
    return printed.getvalue()
