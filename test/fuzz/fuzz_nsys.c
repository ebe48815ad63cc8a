/*
 * libFuzzer: an export of Nsight Systems for `import`: any bytes as the file (the first one is even), or any
 * rows in its tables (odd). What is gathered is in order and within its bounds.
 *
 *   test/fuzz/run.sh 60 nsys
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cmds/import/align.h"
#include "exporter/cmds/import/settle.h"
#include "exporter/input/nsys/nsys.h"
#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

/* ---- any rows ------------------------------------------------------------------------------------------ */

static const struct {
  const char *make, *put;
  int columns;
} tables[] = {{"CREATE TABLE StringIds (id, value)", "INSERT INTO StringIds VALUES (?, ?)", 2},
              {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, "
               "globalPid, demangledName, shortName, gridX, gridY, "
               "gridZ, graphNodeId)",
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", 12},
              {"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId)",
               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?)", 4},
              {"CREATE TABLE NVTX_EVENTS (start, end, globalTid, eventType, text, textId, jsonText, "
               "binaryData, jsonTextId)",
               "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", 9},
              {"CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset)",
               "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (?, ?, ?, ?, ?, ?)", 6},
              {"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs)",
               "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", 1},
              {"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name, value)",
               "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (?, ?)", 2},
              {"CREATE TABLE MPI_RANKS (globalTid, rank)", "INSERT INTO MPI_RANKS VALUES (?, ?)", 2}};
enum { TABLES = sizeof tables / sizeof *tables };

static const char *const words[] = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(",
                                    "ncclDevKernel_SendRecv",
                                    "ncclAllReduceRingLLKernel_sum_f16",
                                    "ncclAllReduce",
                                    "ncclSend",
                                    "ncclGroupStart",
                                    "ncclGroupEnd",
                                    "ncclCommInitRank",
                                    "nccl:all_to_all",
                                    "iteration 7",
                                    "iteration 8",
                                    "Hostname",
                                    "DeviceEnvironment",
                                    "RANK=3\nWORLD_SIZE=8",
                                    "NCCL communicator ID",
                                    "Message size [bytes]",
                                    "No. of ranks",
                                    "Rank",
                                    "Peer rank",
                                    "{\"Message size [bytes]\": 512, \"NCCL communicator ID\": 7}"};

struct input {
  const uint8_t *at, *end;
};
static unsigned byte(struct input *in) { return in->at < in->end ? *in->at++ : 0; }

static void bind(sqlite3_stmt *s, int column, struct input *in) {
  const unsigned kind = byte(in);
  int64_t n = 0;
  size_t bytes;
  switch (kind % 8) {
    case 0:
      sqlite3_bind_null(s, column);
      break;
    case 1:
      sqlite3_bind_text(s, column, words[byte(in) % (sizeof words / sizeof *words)], -1, SQLITE_STATIC);
      break;
    case 2:
      for (int i = 0; i < 8; i++)
        n = (int64_t)((uint64_t)n << 8 | byte(in));
      sqlite3_bind_int64(s, column, n);
      break;
    case 3:
      sqlite3_bind_int64(s, column, INT64_C(1790000000000000000) + byte(in));
      break;
    case 4:
      sqlite3_bind_int64(s, column, (int64_t)byte(in) << 24);
      break;
    case 5:
      bytes = byte(in);
      if (bytes > (size_t)(in->end - in->at))
        bytes = (size_t)(in->end - in->at);
      if (kind & 8)
        sqlite3_bind_blob(s, column, in->at, (int)bytes, SQLITE_TRANSIENT);
      else
        sqlite3_bind_text(s, column, (const char *)in->at, (int)bytes, SQLITE_TRANSIENT);
      in->at += bytes;
      break;
    default:
      sqlite3_bind_int64(s, column, byte(in));
      break;
  }
}

static void write_rows(const char *path, struct input in) {
  sqlite3 *db;
  sqlite3_stmt *put[TABLES];
  unlink(path);
  need(sqlite3_open(path, &db) == SQLITE_OK);
  sqlite3_exec(db, "PRAGMA journal_mode = off; PRAGMA synchronous = off; BEGIN", NULL, NULL, NULL);
  for (int i = 0; i < TABLES; i++) {
    need(sqlite3_exec(db, tables[i].make, NULL, NULL, NULL) == SQLITE_OK);
    need(sqlite3_prepare_v2(db, tables[i].put, -1, &put[i], NULL) == SQLITE_OK);
  }
  while (in.at < in.end) {
    const unsigned table = byte(&in) % TABLES;
    for (int i = 1; i <= tables[table].columns; i++)
      bind(put[table], i, &in);
    sqlite3_step(put[table]);
    sqlite3_reset(put[table]);
  }
  for (int i = 0; i < TABLES; i++)
    sqlite3_finalize(put[i]);
  sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  sqlite3_close(db);
}

/* ---- what is gathered ---------------------------------------------------------------------------------- */

static struct ni_imported kept[64];
static size_t n_kept;

static int look(void *arg, struct ni_imported *m) {
  struct ni_align *a = arg;
  need(m->n > 0);
  for (size_t i = 0; i < m->n; i++) {
    const struct ni_imported_op *op = &m->op[i];
    need(op->comm < m->n_comms && op->func < m->n_funcs && op->kind < NI_KIND_COUNT &&
         (i == 0 || op[-1].start_ns <= op->start_ns));
    need(op->start_ns >= m->first_ns && op->start_ns + (int64_t)op->dur_ns <= m->last_ns);
    need(*m->funcs[op->func] && memchr(m->funcs[op->func], 0, sizeof m->funcs[0]) &&
         (op->sized || op->bytes == 0));
  }
  for (size_t i = 0; i < m->n_comms; i++)
    need(m->comm[i].hash && m->comm[i].rank >= 0 &&
         (m->comm[i].n_ranks == 0 || m->comm[i].rank < m->comm[i].n_ranks));
  if (n_kept == 64)
    return ni_imported_free(m), 0;
  kept[n_kept] = *m;
  return ni_align_add(a, (uint32_t)n_kept++, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_align a = {0};
  struct ni_imported *all[64];
  struct ni_settled settled;
  char path[512];
  static const char *dir;
  if (!dir)
    dir = fuzz_dir("nsys");
  snprintf(path, sizeof path, "%s/rank0.sqlite", dir);
  if (size && data[0] & 1) {
    write_rows(path, (struct input){data + 1, data + size});
  } else {
    FILE *f = fopen(path, "w");
    need(f && fwrite(data + (size > 0), 1, size - (size > 0), f) == size - (size > 0) && fclose(f) == 0);
  }
  n_kept = 0;
  const int e = ni_nsys_read(path, look, &a, NULL);
  need(e == 0 || e == -ENODATA || e == -EBADMSG || e == -EFBIG);
  for (size_t i = 0; i < n_kept; i++)
    all[i] = &kept[i];
  need(ni_import_settle(all, n_kept, &settled) == 0);
  for (size_t i = 0; i < n_kept; i++)
    for (size_t k = 0; k < kept[i].n_comms; k++)
      need(!kept[i].comm[k].open);
  need(ni_align_find(&a) == 0);
  ni_align_free(&a);
  for (size_t i = 0; i < n_kept; i++)
    ni_imported_free(&kept[i]);
  return 0;
}
