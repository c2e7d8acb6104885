"""What the commands share that can work on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bayeslink.commands.options import option
from bayeslink.errors import SettingsError
from bayeslink.options import SPARK
from bayeslink.settings import LinkSettings

_Settings = TypeVar("_Settings", bound=LinkSettings)
LINKED_TO, PEOPLE_TO = "linked_to", "people_to"  # where the executors write


def spark_options(place: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Of a command: its session of Spark, and the place where executors write."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for flag in (
            option(f"--{place.replace('_', '-')}", group=SPARK, metavar="PLACE", help=help),
            option(
                "--spark-conf",
                group=SPARK,
                multiple=True,
                metavar="KEY=VALUE",
                help="A setting of Spark.",
            ),
            option(
                "--master",
                group=SPARK,
                metavar="URL",
                help="Such as local[8] or spark://host:7077. [its own]",
            ),
        ):
            command = flag(command)
        return command

    return with_options


def require_spark(engine: Any, flags: Mapping[str, Any], place: str) -> None:
    """Refuse flags that mean nothing without Spark."""
    names = ("master", "spark_conf", place)
    if engine != "spark" and any(flags[name] for name in names):
        raise SettingsError(
            f"--master, --spark-conf and --{place.replace('_', '-')} need --engine spark."
        )


def with_session(settings: _Settings, flags: Mapping[str, Any]) -> _Settings:
    """The settings with a session of Spark, if it is to do the work."""
    if settings.engine != "spark":
        return settings
    from bayeslink.engines.spark.choosing import started_session

    return replace(settings, engine=started_session(flags["master"], flags["spark_conf"]))
