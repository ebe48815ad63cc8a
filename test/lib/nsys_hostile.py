"""SQLite files for `import nsys` that Nsight Systems does not write: nsys_hostile.py GOOD.sqlite DIR. Each
name says the fault."""
import os
import shutil
import sqlite3
import sys

good, out = sys.argv[1], sys.argv[2]
whole = open(good, "rb").read()


def raw(name, data):
    with open(f"{out}/{name}_0.sqlite", "wb") as f:
        f.write(data)


def changed(name, *statements, script=None):
    path = f"{out}/{name}_0.sqlite"
    shutil.copy(good, path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=off")
    for s in statements:
        db.execute(s) if isinstance(s, str) else db.executemany(*s)
    db.commit()
    db.close()


raw("empty", b"")
raw("text", b"not a database at all, but long enough to have a head" * 100)
raw("head", whole[:16])
raw("page", whole[:4096])
raw("cut", whole[:len(whole) // 2])
raw("zeros", whole[:8192] + bytes(len(whole) - 8192))
raw("flipped", bytes(b ^ (0x55 if i > 4096 and i % 97 == 0 else 0) for i, b in enumerate(whole)))
raw("pagesize", whole[:16] + b"\x00\x03" + whole[18:])
raw("future", whole[:18] + b"\x09\x09" + whole[20:])
# Pages that name each other: each interior page's right child is the root.
loop = bytearray(whole)
for at in range(0, len(loop), 4096):
    if loop[at] == 5:
        loop[at + 8:at + 12] = (at // 4096 + 1).to_bytes(4, "big")
raw("loop", bytes(loop))
changed("view", "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k", "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM r) "
        "SELECT start, 1 AS end, 1 AS shortName FROM r")
changed("trigger", "CREATE TRIGGER t INSERT ON StringIds BEGIN SELECT load_extension('/tmp/x'); END")
changed("generated", "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN x AS (hex(zeroblob(100000000)))",
        "ALTER TABLE NVTX_EVENTS RENAME COLUMN binaryData TO old",
        "ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData AS (zeroblob(1000000000))")
changed("virtual", "PRAGMA writable_schema = 1", "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE NVTX_EVENTS USING csv(filename=/etc/passwd)', rootpage = 0 WHERE name = 'NVTX_EVENTS'")
changed("types", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x', end = 1e300 WHERE rowid % 2",
        "UPDATE NVTX_EVENTS SET globalTid = x'00ff', text = 5 WHERE rowid % 3 = 0",
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = NULL WHERE rowid % 2")
changed("extremes", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9223372036854775807, end = 9223372036854775807 WHERE rowid % 3 = 0",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 0, end = 9223372036854775807, deviceId = -9223372036854775808 WHERE rowid % 3 = 1",
        "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = 9223372036854775807")
changed("texts", ("INSERT INTO StringIds VALUES (?, ?)",
                  [(10**6 + i, "nccl" + "A" * 100000) for i in range(20)]),
        "UPDATE TARGET_INFO_SYSTEM_ENV SET value = 'a' || char(27) || ']0;x' || char(7) || '../../etc/x' WHERE name = 'Hostname'",
        ("UPDATE TARGET_INFO_SYSTEM_ENV SET value = ? WHERE name = 'DeviceEnvironment'",
         [("RANK=99999999999999999999\nWORLD_SIZE=-5\n" * 10000,)]))
changed("blobs", ("UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid % 4 = 0", [(b"\xff" * 31,)]),
        ("UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid % 4 = 1", [(b"\xff" * 64,)]),
        ("UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid % 4 = 2",
         [((1).to_bytes(8, "little") + (1002).to_bytes(8, "little") + (2**63).to_bytes(8, "little") +
           (32).to_bytes(8, "little"),)]),
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = 9223372036854775807 WHERE idx = 1",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET type = -1 WHERE idx = 2")
changed("crowd", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 1",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 60000) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT k.* FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1) k, r",
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = 1, start = 0",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 60000) INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT k.* FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1) k, r")
changed("groups", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 60000) INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) "
        "SELECT i, 9000000000, 59, CASE i % 3 WHEN 0 THEN 'ncclGroupStart' WHEN 1 THEN 'ncclAllReduce' ELSE 'ncclGroupEnd' END, (SELECT max(globalTid) FROM NVTX_EVENTS) FROM r")
changed("steps", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 70000) INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) "
        "SELECT i, 9000000000 * i, 59, 'iteration ' || (999999999 - i), (SELECT max(globalTid) FROM NVTX_EVENTS) FROM r")
changed("nostrings", "DROP TABLE StringIds")
changed("utf16", "UPDATE StringIds SET value = CAST(x'6e63636c00ff' AS TEXT) WHERE id % 2")
for name in ("wal", "journal"):
    raw(name + "beside", whole)
    with open(f"{out}/{name}beside_0.sqlite-{name}", "wb") as f:
        f.write(b"x" * 100)
os.mkfifo(f"{out}/fifo_0.sqlite")
