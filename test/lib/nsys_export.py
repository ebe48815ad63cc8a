"""What `nsys export --type sqlite` writes, by the SQLite Schema Reference of Nsight Systems' user guide:
tables and columns of a version.

    e = Export(path, version=2026, session_ns=..., host="n0", environment={...})
    p = e.process(pid); p.made(comm, n_ranks, rank, device); p.call(...); e.close()

Versions: 2020 (no globalPid of kernels, no session start), 2022 (no payloads), 2023 (payloads as JSON), 2026
(payloads as bytes, their schemas in tables). Times are ns of the session. A call's payload is the struct of
NCCL's nvtx_payload_schemas.h.
"""
import json
import sqlite3
import struct

HW, VM = 1, 2  # of ids: hardware 8 bits, VM 8 bits, process 24 bits, thread 24 bits
SCHEMAS = {  # id: members (name, type of NVTX, struct's letter)
    1001: [("NCCL communicator ID", 18, "Q"), ("No. of ranks", 5, "i"), ("Rank", 5, "i"),
           ("CUDA device", 5, "i")],
    1002: [("NCCL communicator ID", 18, "Q"), ("Message size [bytes]", 22, "Q"),
           ("Reduction operation", 16777217, "i")],
    1003: [("NCCL communicator ID", 18, "Q"), ("Message size [bytes]", 22, "Q")],
    1004: [("NCCL communicator ID", 18, "Q"), ("Message size [bytes]", 22, "Q"), ("Root", 5, "i")],
    1005: [("NCCL communicator ID", 18, "Q"), ("Message size [bytes]", 22, "Q"), ("Peer rank", 5, "i")],
}
SCHEMA_OF = {"AllReduce": 1002, "ReduceScatter": 1002, "Broadcast": 1004, "Reduce": 1004, "Gather": 1004,
             "Scatter": 1004, "Send": 1005, "Recv": 1005}
KERNELS = {"AllReduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
           "AllGather": "ncclDevKernel_AllGather_RING_LL",
           "ReduceScatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
           "Broadcast": "ncclDevKernel_Broadcast_RING_LL",
           "Reduce": "ncclDevKernel_Reduce_Sum_bf16_RING_LL"}

TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT",
    "MPI_RANKS": "globalTid INTEGER NOT NULL, rank INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
                                   "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, {green}"
                                  "streamId INTEGER NOT NULL, correlationId INTEGER, {pid}demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, "
                                  "{mangled}gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, "
                                  "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL{graph}",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, "
                   "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, "
                   "doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT{binary}",
    "NVTX_PAYLOAD_SCHEMAS": "domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER, numEntries INTEGER, payloadSize INTEGER, alignTo INTEGER",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, "
                                   "description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER",
}


class Export:
    def __init__(self, path, version=2026, session_ns=1790000000 * 10**9, host="node-x", environment=None,
                 mode="none"):
        self.version, self.db, self.ids, self.correlation, self.rows = version, sqlite3.connect(path), {}, 1000, {}
        self.db.execute("PRAGMA journal_mode=" + ("wal" if mode == "wal" else "off"))
        fill = {"green": "greenContextId INTEGER, " if version >= 2024 else "",
                "pid": "globalPid INTEGER, " if version >= 2021 else "",
                "mangled": "mangledName INTEGER, " if version >= 2021 else "",
                "graph": ", graphNodeId INTEGER" if version >= 2021 else "",
                "binary": ", binaryData TEXT" if version >= 2024 else ""}
        for name, columns in TABLES.items():
            if (version < 2021 and "SESSION" in name) or (version < 2024 and "PAYLOAD" in name):
                continue
            self.db.execute(f"CREATE TABLE {name} ({columns.format(**fill)})")
            self.rows[name] = []
        if version >= 2021:
            self.row("TARGET_INFO_SESSION_START_TIME", session_ns, "2026-09-21 14:13:20",
                     "2026-09-21 16:13:20")
        self.row("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION",
                 {2026: "3.28.1", 2022: "2.7.1"}.get(version, "2.0.0"))
        env = lambda name, value: self.row("TARGET_INFO_SYSTEM_ENV", VM << 48, "LocalDevice", name, len(name),
                                           value)
        env("Hostname", host)
        env("CpuCores", "96")
        env("DeviceEnvironment", "\n".join(f"{k}={v}"
                                           for k, v in {"PATH": "/usr/bin", "MY_RANK": "77",
                                                        **(environment or {}), "PWD": "/w"}.items()))

    def row(self, table, *values):
        self.rows[table].append(values)

    def id(self, text):
        return self.ids.setdefault(text, len(self.ids) + 1)

    def process(self, pid):
        return Process(self, pid)

    def nvtx(self, start, end, text, tid, payload=None, event_type=59, domain=1, registered=True):
        data = js = None
        if payload and self.version >= 2024:
            schema, values = payload
            body = struct.pack("<" + "".join(m[2] for m in SCHEMAS[schema]), *values)
            body += b"\0" * (-len(body) % 8)
            data = sqlite3.Binary(struct.pack("<4Q", domain, schema, len(body), 32) + body)
        elif payload and self.version >= 2023:
            js = json.dumps(dict(zip((m[0] for m in SCHEMAS[payload[0]]), payload[1])))
        row = [start, end, event_type, None, None, None, None if registered else text, tid, None,
               self.id(text) if registered else None, domain,
               None, None, None, None, None, None, None, js]
        self.row("NVTX_EVENTS", *row, *([data] if self.version >= 2024 else []))

    def close(self):
        if self.version >= 2024:
            for schema, members in SCHEMAS.items():
                at = 0
                self.row("NVTX_PAYLOAD_SCHEMAS", 1, schema, None, 1, None, len(members), 24, None)
                for i, (name, kind, letter) in enumerate(members):
                    self.row("NVTX_PAYLOAD_SCHEMA_ENTRIES", 1, schema, i, None, kind, name, None, None,
                             at or None)
                    at += struct.calcsize(letter)
        self.rows["StringIds"] = [(i, text) for text, i in self.ids.items()]
        for table, rows in self.rows.items():
            if rows:
                self.db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
        self.db.commit()
        self.db.close()


class Process:
    def __init__(self, export, pid):
        self.e, self.pid = export, pid
        self.gpid = HW << 56 | VM << 48 | pid << 24
        self.tid = self.gpid | pid & 0xffffff
        export.row("PROCESSES", self.gpid, pid, "python3")
        export.row("ThreadNames", export.id("python3"), 20, self.tid)

    def made(self, comm, n_ranks, rank, device, at=1000, name="ncclCommInitRankConfig"):
        self.e.nvtx(at, at + 500, name, self.tid, (1001, (comm, n_ranks, rank, device)))

    def range(self, start, end, text, **more):
        self.e.nvtx(start, end, text, self.tid, domain=0, registered=False, **more)

    def api(self, func, start, end, comm, size, at=0):
        """NCCL's own range of a call; at: root or peer."""
        schema = SCHEMA_OF.get(func, 1003)
        values = (comm, size) if schema == 1003 else (comm, size, at)
        self.e.nvtx(start, end, "nccl" + func, self.tid, (schema, values) if comm else None)

    def kernel(self, name, start, end, launch, device=0, stream=7, blocks=8, graph=None,
               api="cudaLaunchKernelExC_v11060", tid=None):
        e = self.e
        e.correlation += 1
        if launch is not None:
            e.row("CUPTI_ACTIVITY_KIND_RUNTIME", launch, launch + 4000, 0, tid or self.tid, e.correlation,
                  e.id(api), 0, None)
        full = e.id(name + "(ncclDevKernelArgsStorage<(unsigned long)4096>)")
        v = e.version
        e.row("CUPTI_ACTIVITY_KIND_KERNEL",
              *([start, end, device, 1] + ([None] if v >= 2024 else []) + [stream, e.correlation] +
                ([self.gpid] if v >= 2021 else [])
              + [full, e.id(name)] + ([None] if v >= 2021 else []) + [blocks, 1, 1, 544, 1, 1] +
              ([graph] if v >= 2021 else [])))

    def call(self, func, start, dur, comm, size, launch=None, at=0, kernel=None, **more):
        """A call by itself: its range, the launch in it, its kernel."""
        launch = start - 40000 if launch is None else launch
        self.api(func, launch - 20000, launch + 9000, comm, size, at)
        self.kernel(kernel or KERNELS.get(func, "ncclDevKernel_SendRecv"), start, start + dur, launch, **more)

    def group(self, calls, kernels, at):
        """calls: (func, comm, size, at); kernels: (name, start, dur). All launched in ncclGroupEnd."""
        self.e.nvtx(at, at + 100, "ncclGroupStart", self.tid)
        for i, (func, comm, size, peer) in enumerate(calls):
            self.api(func, at + 200 * i + 200, at + 200 * i + 300, comm, size, peer)
        end = at + 200 * len(calls) + 400
        self.e.nvtx(end, end + 20000, "ncclGroupEnd", self.tid)
        for i, (name, start, dur) in enumerate(kernels):
            self.kernel(name, start, start + dur, end + 100 + 10 * i)
