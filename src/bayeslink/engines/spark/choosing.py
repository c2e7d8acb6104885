"""Whether a linkage is done on Spark, and what is read there; imports Spark only if so."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bayeslink.data.records import Records
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import PairSource

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
    engine: Any, sources: Sequence[Any], progress: Callable[[str], None], threads: int | None
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


def _sessions() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SettingsError(
            "Spark is not installed here. Install bayeslink[spark] (PySpark 4, and Java 17)."
        ) from None
    return SparkSession


def started_session(master: str | None, settings: Sequence[str] = ()) -> Any:
    """A session for the command line: quiet, and open to nobody where it is on this machine."""
    warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)  # of pandas 3
    builder = _sessions().builder.appName("bayeslink")
    local = master is not None and master.startswith("local")
    own = {"spark.ui.showConsoleProgress": "false", "spark.driver.maxResultSize": "0"}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        own |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        own["spark.ui.enabled"] = "false"
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(f"--spark-conf {setting!r} is not KEY=VALUE.")
        own[key] = value
    for key, value in own.items():
        builder = builder.config(key, value)
    try:
        session = (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        raise SettingsError(
            f"Spark does not start ({type(error).__name__}). It needs Java 17 (JAVA_HOME), and a "
            "master that answers (--master)."
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    return session


def is_here(source: Any, pairs: PairSource) -> bool:
    """Whether a path means something to this machine: what Spark reads may be elsewhere."""
    return pairs.kind != "spark" or os.path.exists(source)


def active_session() -> Any:
    """The Spark session of this process."""
    session = _sessions().getActiveSession()
    if session is None:
        raise SettingsError(
            "no Spark session is active. Give one: engine=spark, "
            "from spark = SparkSession.builder.getOrCreate()."
        )
    return session


def has_there(cluster: Cluster, source: Any) -> bool:
    """Whether a source is a table that Spark has."""
    from bayeslink.engines.spark.frames import spark_frame

    return spark_frame(cluster.session, source) is not None


def read_there(cluster: Cluster, source: Any, *, side: str, **how: Any) -> Records | None:
    """Records of a table that Spark has; None where this machine reads the source itself."""
    from bayeslink.engines.spark.frames import read_frame, spark_frame

    frame = spark_frame(cluster.session, source)
    if frame is None:
        return None
    label = "spark.DataFrame" if is_spark(source) else os.fspath(source)
    return read_frame(cluster, frame, label=label, side=side, **how)
