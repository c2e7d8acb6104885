"""What a linkage is asked, looked at before any work is done."""

from __future__ import annotations

import os
from typing import Any

from bayeslink.comparing.fields import Field
from bayeslink.data.locations import parts_of, require_there
from bayeslink.engines.same_input import refuse_same_source
from bayeslink.engines.spark.choosing import is_spark
from bayeslink.errors import SettingsError
from bayeslink.memory import parse_memory
from bayeslink.sampling.chains import check_sampling
from bayeslink.settings import LinkSettings


def check_link(a: Any, b: Any, settings: LinkSettings) -> None:
    """Refuse what `link` cannot do, by its arguments alone: settings, and paths that are not there.

    What Spark reads is for Spark to say.
    """
    check_sampling(
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        seed=settings.seed,
        threads=settings.threads,
        levels=sum(f.n_levels for f in settings.fields or () if isinstance(f, Field)),
        budget=parse_memory(settings.memory),
    )
    for what, path in (("(labels)", settings.labels), ("(model)", settings.model)):
        require_there(path, what)
    if parts_of(a) is not None and settings.engine not in (None, "local"):
        raise SettingsError(
            "several parts of a file are read by this machine, and Spark was asked for. Give a "
            "folder of Parquet files instead."
        )
    if settings.engine in (None, "local") and not any(map(is_spark, (a, b))):
        require_there(a, "A")
        require_there(b, "B")
    refuse_same_source(a, b, settings.read)


def refuse_third_file(fields: Any) -> None:
    """`link(a, b, c)`: the third argument is the fields, not a file."""
    table = hasattr(fields, "__arrow_c_stream__") or isinstance(fields, os.PathLike)
    if table or (isinstance(fields, str) and os.path.isfile(fields)):
        raise SettingsError(
            "the third argument is what to compare, such as [bl.name('surname')], and a file was "
            "given. For three files and more: bl.link_many({'a': a, 'b': b, 'c': c})."
        )
