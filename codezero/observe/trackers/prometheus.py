"""Prometheus: serves the latest round at http://HOST:PORT/metrics with the server of prometheus-client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from codezero.observe.trackers.metrics import Metric

AT = "codezero_last_report_timestamp_seconds"


class Prometheus(Collector):
    """Implements `threads.Tracker`. Serves only numbers that the latest report has, and sums since the start."""

    name = "tracking.prometheus_port"

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._latest: list[Metric] = []
        self._totals: dict[tuple[str, str], Metric] = {}
        self._at_s = 0.0
        self._lock = threading.Lock()

    def open(self) -> None:
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(self._port, self._host, registry)
        except OSError as error:
            where = f"{self._host}:{self._port}"
            raise OSError(
                f"cannot listen on {where} ({error.strerror}): give another port, or 0 to serve nothing"
            ) from error

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        with self._lock:
            self._latest, self._at_s = [metric for metric in metrics if not metric.counts], time.time()
            for metric in metrics:
                if metric.counts:
                    self._add(metric)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _add(self, metric: Metric) -> None:
        key = metric.family, metric.label[1] if metric.label is not None else ""
        before = self._totals[key].value if key in self._totals else 0.0
        self._totals[key] = replace(metric, value=before + metric.value)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yields the metric families of a scrape."""
        with self._lock:
            latest, totals, at_s = list(self._latest), list(self._totals.values()), self._at_s
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for metric in [*latest, *totals]:
            kind = CounterMetricFamily if metric.counts else GaugeMetricFamily
            names = [metric.label[0]] if metric.label else []
            family = families.setdefault(metric.family, kind(metric.family, metric.help, labels=names))
            family.add_metric([metric.label[1]] if metric.label else [], metric.value)
        yield from families.values()
        yield GaugeMetricFamily(AT, "Unix time of the last report, 0 before the first", value=at_s)
