"""What a command that was stopped says of how to go on."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from allotment.cli import main
from allotment.cli.campaign import stoppable


@pytest.mark.parametrize(
    "typed",
    [
        "estimate camp --learner 'my own.py:make' --on ray://head:10001 --workers 2"
        " --hourly 3 --dry-run --option ahead=5 --option validation=0.3 --json",
        "evaluate camp --now",
        "demo 'my demo' --quick --on slurm",
        "experiment run figure-2 figure-5 --root 'VOC 2012' --cluster gpus=0.5 --on ray",
    ],
)
def test_the_whole_command_is_to_be_typed_again(
    typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(typed)
    command: click.Command = main
    names = []
    while isinstance(command, click.Group):
        names.append(words[len(names)])
        found = command.get_command(click.Context(command), names[-1])
        assert found is not None
        command = found

    def stop(**given: object) -> None:
        with stoppable():
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "callback", stop)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 130
    again = shlex.split(result.stderr.rsplit("to go on from there: ", 1)[1])
    assert again[: 1 + len(names)] == ["allot", *names]
    assert sorted(again[1:]) == sorted(words)
