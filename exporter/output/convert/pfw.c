/*
 * For dfanalyzer: DFTracer's events, one object a line. Phases are letters, since the dftracer-utils that
 * dfanalyzer works with takes metadata with numbers for events; there is no event for begin and end of a
 * trace, whose times would move the origin.
 */
#include <errno.h>

#include "row.h"

/* FNV-1a: the same host has the same hash in each file. */
static uint64_t hash_text(const char *text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text; text++)
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

static void open_line(struct ni_json *j, FILE *f, const char *name, const char *cat,
                      const struct ni_convert_row *row, const char *phase) {
  ni_json_open(j, f, NULL);
  ni_json_text(j, "name", name);
  ni_json_text(j, "cat", cat);
  ni_json_i64(j, "pid", row->unit);
  ni_json_i64(j, "tid", row->lane);
  ni_json_text(j, "ph", phase);
}

static void close_line(struct ni_json *j) {
  ni_json_end_object(j);
  ni_json_close(j);
}

static void write_metadata(FILE *f, const struct ni_convert_row *row, const char *what, const char *name,
                           const char *value) {
  struct ni_json j;
  open_line(&j, f, what, "dftracer", row, "M");
  ni_json_object(&j, "args");
  ni_json_text(&j, "name", name);
  ni_json_text(&j, "value", value);
  close_line(&j);
}

/*
 * A communicator is shown as a file. dfanalyzer drops names with /dev/, /etc/ and other folders of a system
 * in them.
 */
static void write_communicator(FILE *f, const struct ni_convert_row *row, const char *hash) {
  char name[160];
  const bool named = row->comm_name && *row->comm_name;
  const size_t n = (size_t)snprintf(name, sizeof name, "/comm/%s", row->id);
  if (named)
    snprintf(name + n, sizeof name - n, "-%.96s", row->comm_name);
  for (char *p = name + n; *p; p++)
    if (*p == '/')
      *p = '_';
  write_metadata(f, row, "FH", name, hash);
}

int ni_pfw_row(struct ni_convert_out *o, const struct ni_convert_row *row) {
  FILE *f = ni_convert_stream(o);
  struct ni_json j;
  char host[24], comm[24];
  if (!f)
    return -ENOMEM;
  const char *hostname = row->hostname ? row->hostname : "";
  const uint64_t host_hash = hash_text(hostname);
  snprintf(host, sizeof host, "%016llx", (unsigned long long)host_hash);
  snprintf(comm, sizeof comm, "%016llx", (unsigned long long)row->comm_hash);
  const uint32_t hosts = (uint32_t)o->hosts.n, comms = (uint32_t)o->comms.n;
  const int64_t h = ni_map_find_or_add(&o->hosts, host_hash, 0, hosts),
                k = ni_map_find_or_add(&o->comms, row->comm_hash, 0, comms);
  if (h < 0 || k < 0)
    return -ENOMEM;
  if (o->hosts.n > hosts)
    write_metadata(f, row, "HH", hostname, host);
  if (o->comms.n > comms)
    write_communicator(f, row, comm);
  if (hosts == 0 && row->global_rank != NI_NOT_STATED) {
    char rank[24];
    snprintf(rank, sizeof rank, "%lld", (long long)row->global_rank);
    write_metadata(f, row, "PR", "rank", rank);
  }
  open_line(&j, f, row->coll, "comm", row, "X");
  ni_json_i64(&j, "ts", row->start_ns / 1000);
  ni_json_u64(&j, "dur", row->exec_us);
  ni_json_object(&j, "args");
  ni_json_text(&j, "hhash", host);
  ni_json_text(&j, "fhash", comm);
  ni_json_u64(&j, "size_sum", row->msg_bytes);
  ni_convert_fields(&j, row, true);
  close_line(&j);
  return ni_convert_cut(o);
}
