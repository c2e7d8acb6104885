"""Spark on this machine, for tests: Java found, or installed if it can be."""

import os
import shutil
import sys
from importlib.util import find_spec

from tests.debian import install, lacking

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
}


def java():
    """Java on this machine; Debian's is installed if it can be."""
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    if not shutil.which("java"):
        install("openjdk-17-jre-headless")
    return shutil.which("java")


def spark_session(master, **settings):
    """A session, or a skipped test with the reason."""
    if find_spec("pyspark") is None:
        lacking("PySpark is not installed: bayeslink[spark]")
    if java() is None:
        lacking("no Java here, and apt-get could not install Debian's openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # nobody else is to reach it
    builder = SparkSession.builder.master(master).appName("bayeslink-tests")
    for key, value in {**QUIET, **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
