"""Writes a time series of counters as docs/format.md has it, by its words alone: for tests of those who read
them."""
import gzip
import json

NS = 10**9


class Series:
    """One file of one host. entities: [{"source", "name", ..., "metrics": [{"name", ...}]}]; values: a list
    for all metrics in their order, None: unreadable."""

    def __init__(self, path, host, entities, interval_ns=NS, pid=77):
        self.file = gzip.open(path, "wt")
        self.head = {"header": {"id": "0x0", "rank": -1, "n_ranks": 0, "nnodes": 0},
                     "metadata": {"inspector_output_format_version": "v4.0", "git_rev": None,
                                  "rec_mechanism": None, "dump_timestamp_us": 0, "hostname": host, "pid": pid,
                                  "producer": None}}
        self.entities, self.sample_sn, self.last, self.interval_ns = entities, 0, None, interval_ns
        first, n = 0, sum(len(e["metrics"]) for e in entities)
        for i, e in enumerate(entities):
            self.put("counter_names", {"set_sn": 0, "interval_ns": interval_ns, "entity": i,
                                       "n_entities": len(entities), **{k: v for k, v in e.items() if k != "metrics"}, "first": first, "n_counters": n,
                                       "metrics": e["metrics"]})
            first += len(e["metrics"])

    def put(self, kind, line):
        self.file.write(json.dumps({**self.head, kind: line}) + "\n")

    def sample(self, ns, values):
        """All values as they are; the reader must not care whether differences or values are written."""
        self.head["metadata"]["dump_timestamp_us"] = ns // 1000
        line = {"set_sn": 0, "sample_sn": self.sample_sn, "since_sn": None, "realtime_ns": ns,
                "monotonic_ns": ns - 1700000000 * NS,
                "sweep_ns": 1000, "values": values}
        if self.last and None not in self.last and None not in values:
            line["since_sn"] = self.sample_sn - 1
            line["values"] = [b - a for a, b in zip(self.last, values)]
        self.put("counters", line)
        self.last = values
        self.sample_sn += 1

    def close(self):
        self.file.close()
