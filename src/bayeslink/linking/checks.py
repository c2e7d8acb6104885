"""What a linkage is asked, looked at before any work is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from bayeslink.comparing.fields import Field
from bayeslink.data.places import require_there
from bayeslink.data.records import ReadOptions
from bayeslink.engines.compare import flat, read_options
from bayeslink.engines.same_input import refuse_same_source
from bayeslink.engines.spark.choosing import is_spark
from bayeslink.errors import SettingsError
from bayeslink.inference.sampler import check_sampling
from bayeslink.memory import parse_memory


def check_link(
    a: Any,
    b: Any = None,
    fields: Any = None,
    *,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int = 1,
    threads: int | None = None,
    memory: str | int | None = None,
    labels: Any = None,
    model: Any = None,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    engine: Any = None,
    **_: Any,
) -> None:
    """Refuse what `link` cannot do, by its arguments alone: settings, and paths that are not there.

    What Spark reads is for Spark to say.
    """
    _refuse_third_file(fields)
    check_sampling(
        draws=draws,
        tune=tune,
        chains=chains,
        seed=seed,
        threads=threads,
        levels=sum(f.n_levels for f in flat(fields or ()) if isinstance(f, Field)),
        budget=parse_memory(memory),
    )
    for what, path in (("(labels)", labels), ("(model)", model)):
        require_there(path, what)
    if engine in (None, "local") and not any(map(is_spark, (a, b))):
        require_there(a, "A")
        require_there(b, "B")
    refuse_same_source(a, b, read_options(read, missing))


def _refuse_third_file(fields: Any) -> None:
    """`link(a, b, c)`: the third argument is the fields, not a file."""
    table = hasattr(fields, "__arrow_c_stream__") or isinstance(fields, os.PathLike)
    if table or (isinstance(fields, str) and os.path.isfile(fields)):
        raise SettingsError(
            "the third argument is what to compare, such as [bl.name('surname')], and a file was "
            "given. Two files are linked at a time: link two, take run.joined(how='outer'), and "
            "link that with the third."
        )
