"""Whether a linkage is done on Spark, and what is read there; imports Spark only if so."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bayeslink.data.records import Records
from bayeslink.errors import SettingsError

if TYPE_CHECKING:
    from bayeslink.engines.spark.cluster import Cluster

_SESSION = (
    'engine must be a Spark session or "spark" (with a session that is active), or be left out '
    "for this machine, got {given!r}."
)


def is_spark(thing: Any) -> bool:
    """Whether this is a session or a DataFrame of Spark."""
    return any(kind.__module__.startswith("pyspark.sql") for kind in type(thing).__mro__)


def cluster_for(
    engine: Any, sources: tuple[Any, Any], progress: Callable[[str], None], threads: int | None
) -> Cluster | None:
    """The cluster that does the work; None: this machine does."""
    session = engine
    if engine is None or engine == "local":
        session = next((s.sparkSession for s in sources if is_spark(s)), None)
        if session is None:
            return None
    elif engine == "spark":
        session = active_session()
    if not is_spark(session) or not hasattr(session, "range"):
        raise SettingsError(_SESSION.format(given=engine))
    from bayeslink.engines.spark.cluster import Cluster

    return Cluster(session, progress, threads)


def active_session() -> Any:
    """The Spark session of this process."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SettingsError(
            "Spark is not installed here. Install bayeslink[spark] (PySpark 4, and Java 17)."
        ) from None
    session = SparkSession.getActiveSession()
    if session is None:
        raise SettingsError(
            "no Spark session is active. Give one: engine=spark, "
            "from spark = SparkSession.builder.getOrCreate()."
        )
    return session


def read_there(cluster: Cluster, source: Any, *, side: str, **how: Any) -> Records | None:
    """Records of a table that Spark has; None where this machine reads the source itself."""
    from bayeslink.engines.spark.frames import read_frame, spark_frame

    frame = spark_frame(cluster.session, source)
    if frame is None:
        return None
    label = "spark.DataFrame" if is_spark(source) else os.fspath(source)
    return read_frame(cluster, frame, label=label, side=side, **how)
