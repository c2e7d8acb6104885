"""A run directory while it is written: claimed by one process, then put in place in one step.

Beside OUT lies `.OUT.unfinished` while somebody works on it. It holds the lock, which the system
lets go when its process ends, however it ends; so a folder whose lock is free was left by a process
that died, and is cleaned by whoever claims OUT next.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bayeslink.data.locations import each_part
from bayeslink.errors import OutputError, reason_of
from bayeslink.private import GROUP, OWNER

# What is ours in a directory whose run.json has no list of files.
_KNOWN = {"run.json", "link.toml", "links.csv"} | {
    f"{name}.parquet"
    for name in ("links", "pairs", "draws", "link_draws", "parameters", "reach", "labels")
}
REPORT = "report.html"  # which goes with its run
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@dataclass(slots=True)
class Claim:
    """A directory that this thread alone may write."""

    target: Path  # symbolic links followed
    work: Path  # the folder beside it
    thread: int
    keep: bool = False  # the folder beside it when the claim ends


_held: dict[Path, Claim] = {}


@contextmanager
def claim(directory: str | Path, *, force: bool, inputs: Iterable[Any] = ()) -> Iterator[Claim]:
    """Have a run directory to oneself, from before the work until it is written.

    An existing directory is refused without `force`, and so is one that no run has written or
    that holds an input. Within a claim of the same thread, this is that claim.
    """
    target = _followed(directory)
    found = _held.get(target)
    if found is not None and found.thread == threading.get_ident():
        yield found
        return
    check_target(target, force=force)
    refuse_inputs(target, inputs)
    made: list[Path] = []
    try:
        made = _make_parents(target)
        lock = _locked(target)
    except OSError as error:
        _remove_empty(made)
        raise cannot_write(target, error) from None
    held = Claim(target, _work(target), threading.get_ident())
    try:
        _held[target] = held
        _clean(held)
        check_target(target, force=force)  # again: another may have been first
        yield held
    finally:
        del _held[target]
        if not held.keep:
            shutil.rmtree(held.work, ignore_errors=True)
        lock.release()
        if not target.exists():
            _remove_empty(made)


@contextmanager
def replacing(directory: str | Path, *, force: bool, shared: bool = False) -> Iterator[Path]:
    """A new folder that becomes `directory` if all goes well, and vanishes if not.

    What is there stays whole until the new one is complete, and files that no run has written stay
    in any case. Only the owner may read it, or the group too if it is `shared`.
    """
    with claim(directory, force=force) as held:
        new = held.work / "new"
        try:
            new.mkdir(mode=0o700)
            yield new
            _settle(new, shared)
            check_target(held.target, force=force)
            _put_in_place(new, held, force)
        except OutputError:
            raise
        except OSError as error:
            raise cannot_write(held.target, error) from None
        finally:
            shutil.rmtree(new, ignore_errors=True)


def check_target(target: Path, *, force: bool) -> None:
    """Refuse a directory that is in use, or with `force` one that no run has written."""
    try:
        if not target.exists():
            return
        mounted, empty = _mounted(target), target.is_dir() and not any(target.iterdir())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise cannot_write(target, error) from None
    if mounted:
        raise OutputError(
            f"{target} is a mount point, or has one in it, so it cannot be replaced in one step. "
            f"Nothing was written. Choose a new folder, such as {target / 'run'}."
        )
    if empty:
        return
    if not force:
        raise OutputError(
            f"{target} exists. Nothing was written. Choose another output directory, "
            "or say --force (force=True) to replace it."
        )
    if not is_run(target):
        raise OutputError(
            f"{target} exists and is not a bayeslink run directory. Nothing was written. "
            "Choose another output directory."
        )


def _mounted(target: Path) -> bool:
    """Whether another file system is mounted there or below; `ismount` misses bind mounts."""
    if os.path.ismount(target):
        return True
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:  # not Linux
        return False
    for line in lines:
        place = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), line.split()[4])
        if Path(os.fsdecode(place)).is_relative_to(target):
            return True
    return False


def refuse_inputs(target: Path, inputs: Iterable[Any]) -> None:
    """Refuse to replace a directory in which an input lies."""
    for given in (part for source in inputs for part in each_part(source)):
        if isinstance(given, str | os.PathLike):
            try:
                inside = Path(os.path.realpath(given)).is_relative_to(target)
            except (OSError, ValueError):  # no path: whoever reads it will tell
                continue
            if inside:
                raise OutputError(
                    f"an input lies in {target}, which is to be replaced. Nothing was written. "
                    "Move the input, or choose another output directory."
                )


def is_run(target: Path) -> bool:
    """Whether a run wrote the run.json there: another program's may be called the same."""
    versions = _summary(target).get("versions")
    return isinstance(versions, dict | list) and "bayeslink" in versions


def cannot_write(target: Path, error: OSError | ValueError) -> OutputError:
    return OutputError(
        f"cannot write {target}: {reason_of(error)}. What was there is untouched. "
        "Check the permissions and the space left, or choose another directory."
    )


# --- the claim ----------------------------------------------------------------------------------


def _followed(directory: str | Path) -> Path:
    try:
        return Path(os.path.realpath(directory))
    except (OSError, ValueError) as error:  # a NUL, or links in a circle
        raise cannot_write(Path(directory), error) from None


def unfinished(directory: str | Path) -> Path:
    """The folder beside a run directory for what is unfinished."""
    return _work(_followed(directory))


def _work(target: Path) -> Path:
    return target.with_name(f".{target.name}.unfinished")


def _make_parents(target: Path) -> list[Path]:
    """Make the folders above, and say which were made, the deepest first."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _locked(target: Path) -> FileLock:
    """The lock of a directory, held until it is released or its process ends."""
    work = _work(target)
    lock = FileLock(work / "lock", mode=0o600, blocking=False)
    while True:
        work.mkdir(mode=0o700, exist_ok=True)
        try:
            lock.acquire()
        except FileNotFoundError:  # just removed by whoever had the claim
            continue
        except Timeout:
            raise OutputError(
                f"another bayeslink is writing {target}. Nothing was written. Wait for it to "
                "end, or choose another output directory."
            ) from None
        return lock


def _clean(held: Claim) -> None:
    """Remove what a process left that died; bring back what it had put aside."""
    aside = held.work / "old"
    if aside.exists() and not held.target.exists():
        aside.rename(held.target)
    for name in ("new", "old"):
        shutil.rmtree(held.work / name, ignore_errors=True)


# --- in place -----------------------------------------------------------------------------------


def _settle(folder: Path, shared: bool) -> None:
    """Readable by whom it is for, and on the disk, before it takes its place."""
    for path in folder.iterdir():
        path.chmod(GROUP if shared else OWNER)
        _sync(path)
    folder.chmod(0o750 if shared else 0o700)
    _sync(folder)


def _sync(path: Path) -> None:
    with suppress(OSError):  # a file system that cannot
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _put_in_place(new: Path, held: Claim, force: bool) -> None:
    target = held.target
    if not force or not target.exists() or not any(target.iterdir()):
        new.rename(target)  # which no system lets replace a directory that holds something
    else:
        for path in _of_others(target):
            _share(path, new)
        if not _exchange(new, target):
            _exchange_in_two_steps(new, held)
        for path in _of_others(new):  # came in the meantime
            with suppress(OSError):
                if not (target / path.name).exists():
                    path.rename(target / path.name)
    _sync(target.parent)


def _of_others(folder: Path) -> list[Path]:
    """What is in a run directory and no run has written."""
    from bayeslink.judging.judgements import FILE  # SQLite, which the command line starts without

    told = _summary(folder).get("files")
    judged = {FILE + end for end in ("", "-journal", "-wal", "-shm")}  # with SQLite's own files
    ours = {*(told if isinstance(told, dict | list) else _KNOWN), "run.json", REPORT, *judged}
    return [path for path in folder.iterdir() if path.name not in ours]


def _share(path: Path, new: Path) -> None:
    """Have a file or folder of somebody else in the new directory as well."""
    place = new / path.name
    if place.exists():
        raise OutputError(
            f"{path} is not of the run it lies beside, and the new one has a file of that name. "
            "What was there is untouched. Move it, or choose another output directory."
        )
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, place, symlinks=True, copy_function=_same_file)
    else:
        _same_file(path, place)


def _same_file(path: Any, place: Any) -> None:
    try:
        os.link(path, place, follow_symlinks=False)
    except OSError:  # no hard links there
        shutil.copy2(path, place, follow_symlinks=False)


def _exchange(one: Path, other: Path) -> bool:
    """Have two directories change places in one step; False where the system cannot."""
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    here = {"linux": -100, "darwin": -2}.get(sys.platform)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name or "")
    except (AttributeError, OSError):
        return False
    if call(here, os.fsencode(one), here, os.fsencode(other), _SWAP) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code))


def _exchange_in_two_steps(new: Path, held: Claim) -> None:
    """If this process dies in between, whoever claims the directory next brings it back."""
    aside = held.work / "old"
    try:
        held.target.rename(aside)
        new.rename(held.target)
    except BaseException:  # Ctrl-C, too
        if not held.target.exists():
            aside.rename(held.target)
        raise
    aside.rename(new)


def _summary(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "run.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
