"""`leeward`: the table of commands, and what becomes of an error.

Exit status: 0 done; 2 bad input or usage; 3 the guarantee cannot be met on this data (nothing written);
4 verification failed (nothing shared); 1 a fault of ours; 130 and 143 interrupted.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from leeward.errors import BadInput, LeewardError
from leeward.memory import watch_memory
from leeward.methods import METHODS
from leeward.texts import for_terminal
from leeward.version import __version__

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Data": {
        "demo": ("data", "Release and verify a made-up cohort, with its report."),
        "synth": ("synth", "Write made-up data of one kind."),
        "profile": ("data", "Describe a cohort: content, oddities, re-identification risk."),
        "split": ("data", "Cut a table that is larger than memory into parts by patient."),
        "vocabulary": ("data", "Add, list and remove hierarchies and phecode maps."),
    },
    "Choice of a method": {
        "recommend": ("choice", "Recommend a method, k, m and epsilon for planned analyses."),
        "explore": ("choice", "Try a spec with other parameters and methods; compare risk and utility."),
        "compare": ("choice", "Compare the risk and utility of finished releases."),
        "spec": ("spec", "Turn the flags of a method's command into a spec."),
    },
    "Releases": {
        "protect": ("methods", "Run a spec: release its cohort."),
        **{each.command: ("methods", each.line) for each in METHODS.values()},
        "cohort": ("cohort", "Draw a cohort from a master release of visits."),
        "refresh": ("refresh", "Release the next version of a release, with what is new."),
        "notes": ("notes", "Find and remove identities in clinical notes; make a table of them."),
    },
    "What a release is worth": {
        "show": ("releases", "Show what a release folder is and who may have it."),
        "verify": ("releases", "Check a release's guarantee from its files alone."),
        "measure": ("releases", "Measure what a release lost, against its source."),
        "estimate": ("releases", "Count patients with some codes in a release."),
        "omop": ("omop", "Write a release as tables of the OMOP CDM."),
        "dossier": ("releases", "Write the technical evidence on a release for the expert who decides."),
        "releases": ("register", "List and compare the releases that the register of the house counts."),
    },
    "Counts with noise": {
        "index": ("counts", "Index notes or codes for differentially private counts."),
        "query": ("query", "Count patients in an index, with noise, paid from a budget."),
        "itemsets": ("counts", "List frequent health terms with noisy counts, paid once from a budget."),
        "budget": ("counts", "Show the budget of an index: what was spent, and by whom."),
        "audit": ("counts", "Check an index's ledger: its log, accounts and answers."),
        "serve": ("serve", "Serve the portal where researchers ask and custodians decide."),
    },
    "This machine": {
        "warm": ("warm", "Compile all kernels now, so that the first run need not."),
    },
}
"""The commands as `leeward --help` has them: the module of each, where it has its own name, and its line. Those of
methods follow from METHODS."""

COMMANDS = {name: row for section in SECTIONS.values() for name, row in section.items()}
"""Each command by its name."""

DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
)


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def __init__(
        self,
        *args: Any,
        table: dict[str, tuple[str, str]] | None = None,
        sections: dict[str, dict[str, tuple[str, str]]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table or {}
        self.sections = sections or {"Commands": self.table}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"leeward.cli.{self.table[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            from leeward.fields import nearest

            ctx.fail(f"there is no command `{args[0]}`{nearest(args[0], self.table)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, table in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in table.items()])


@click.group(
    cls=LazyGroup, table=COMMANDS, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="leeward")
def leeward() -> None:
    """Release patient data for research without giving patients away.

    \b
    Examples:
      leeward demo
      leeward profile events.csv --patient pid --code icd
      leeward disassociate events.csv --patient pid --code icd --k 5 --m 2 -o release
      leeward verify release --source events.csv --patient pid --code icd

    Exit status: 0 done; 2 bad input or usage; 3 the guarantee cannot be met on this data (nothing written);
    4 verification failed (nothing shared). LEEWARD_DEBUG=1 shows the traceback of a fault.
    """


INTERRUPTED = (130, 143)
"""Exit statuses of Ctrl-C and of SIGTERM."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit status; with `args`, end as `sys.exit` does."""
    if args is not None:
        sys.exit(status_of(args))
    sys.unraisablehook = _interrupt_again
    try:
        status = status_of()
    except SystemExit as request:
        status = request.code if isinstance(request.code, int) else 1
    if status in INTERRUPTED and any(not each.daemon for each in threading.enumerate()[1:]):
        os._exit(status)  # Python would wait for a pool's threads, and a kernel may run for minutes
    if "_duckdb" not in sys.modules:  # which complains of all that it then cannot free
        gc.freeze()  # or all that is left is looked over once more, for a tenth of a second
    sys.exit(status)


def status_of(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, with every message on stderr."""
    restore = _end_like_an_interrupt()
    try:
        for number, each in enumerate(sys.argv[1:] if args is None else args, start=1):
            if any("\ud800" <= sign <= "\udfff" for sign in each):  # no page, manifest or table could hold it
                raise BadInput(f"argument {number} is not text in UTF-8; rename the file.")
        with watch_memory(_end_for_memory):
            outcome = leeward.main(args, prog_name="leeward", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except LeewardError as error:
        _say(f"leeward: {error}")
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as request:
        return request.exit_code
    except (click.Abort, KeyboardInterrupt) as stop:
        # Click calls the end of any file an abort, as of typed answers
        if isinstance(stop.__cause__, EOFError):
            return _fault(stop.__cause__)
        _say("leeward: interrupted; nothing was left behind.")
        return 130
    except BrokenPipeError:
        # The reader of our output left (`| head`); Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit:
        raise
    except BaseException as error:  # native libraries panic outside of Exception
        return _fault(error)
    finally:
        restore()


MORE_MEMORY = (
    "leeward: out of memory; nothing was left behind. Give it more; a cohort "
    "can also be cut by patient (leeward split) and released in parts, or released on Spark (--engine spark)."
)


def _end_for_memory() -> None:
    """End the process while it can still say why: the system would kill it without a word."""
    from leeward.release.aside import remove_own

    remove_own()
    _say(MORE_MEMORY)
    os._exit(2)


NO_MEMORY = (
    "out of memory", "cannot allocate", "can't start new thread", "failed to allocate", "malloc",
    "failed to map segment",
)  # fmt: skip


def _short_of_memory(error: BaseException) -> bool:
    """Whether the memory gave out: Python says so in one way, libraries below in several."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    # without address space nothing loads
    if isinstance(error, OSError) and "load shared object" in str(error):
        return _address_space_is_bounded()
    return any(sign in str(error).lower() for sign in NO_MEMORY)


def _address_space_is_bounded() -> bool:
    """Whether there is a `ulimit -v`."""
    try:
        import resource
    except ImportError:  # not a system with such limits
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _fault(error: BaseException) -> int:
    """An error of the disk is for the user to solve. Every other is ours; its text may hold data and is not printed."""
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        where = f"{str(error.filename)[:200]}: " if error.filename else ""
        _say(f"leeward: {where}{os.strerror(error.errno or 0).lower()}; nothing was left behind.")
        return 2
    if _short_of_memory(error):
        _say(MORE_MEMORY)
        return 2
    if os.environ.get("LEEWARD_DEBUG"):
        traceback.print_exception(error)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
        _say(
            f"leeward: a bug in Leeward ({type(error).__name__}{place}); please report it. "
            "LEEWARD_DEBUG=1 shows more; its output may hold data of patients."
        )
    return 1


def _end_like_an_interrupt() -> Callable[[], Any]:
    """Let SIGTERM unwind the stack, so that a half-written release is removed; returns what brings back the old way."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: whoever started the thread owns the signals
        before = None
    return lambda: None if before is None else signal.signal(signal.SIGTERM, before)


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose exception Python ignored, as it does in callbacks: its imports have many.

    After a moment and to the whole process, so that it finds the main thread outside of the callback, asleep or not.
    """
    number = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}.get(ignored.exc_type)
    if number is None:
        sys.__unraisablehook__(ignored)
        return
    again = threading.Timer(0.01, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _say(message: str) -> None:
    click.echo(for_terminal(message), err=True)
