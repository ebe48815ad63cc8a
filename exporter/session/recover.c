#include "recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/time_text.h"

static int older_first(const void *a, const void *b) {
  const struct ni_session *x = &((const struct ni_state *)a)->session,
                          *y = &((const struct ni_state *)b)->session;
  return x->start_ns != y->start_ns ? x->start_ns < y->start_ns ? -1 : 1 : strcmp(x->id, y->id);
}

int ni_states_read(int dir, struct ni_state **list) {
  int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = again < 0 ? NULL : fdopendir(again);
  size_t n = 0, cap = 0;
  *list = NULL;
  if (!d)
    return -errno;
  for (struct dirent *e; (e = readdir(d));) {
    if (strlen(e->d_name) != 36 || strspn(e->d_name, "0123456789abcdef-") != 36)
      continue;
    if (!ni_array_room(*list, n, cap)) {
      free(*list);
      closedir(d);
      return -ENOMEM;
    }
    n += ni_state_read(dir, e->d_name, *list + n) == 0;
  }
  closedir(d);
  if (n)
    qsort(*list, n, sizeof **list, older_first);
  return (int)n;
}

int ni_store_read(const char *data, struct ni_session **list, char *why, size_t cap) {
  struct ni_state *states = NULL;
  int dir = ni_out_dir(data, false, why, cap), n = dir < 0 ? dir : ni_states_read(dir, &states);
  *list = n < 0 ? NULL : calloc((size_t)n + 1, sizeof **list);
  if (n >= 0 && !*list)
    n = -ENOMEM;
  for (int i = 0; i < n; i++) {
    struct ni_session *s = &states[n - 1 - i].session;
    if (s->active) { /* its state is older than its frames */
      struct ni_past p = {0};
      if (ni_past_last(&p, dir, s->id, true) == 0) {
        s->frames = p.last;
        s->late = p.late;
      }
      ni_past_free(&p);
    }
    (*list)[i] = *s;
  }
  free(states);
  if (n < 0 && dir >= 0)
    snprintf(why, cap, "%s: %s", data, strerror(-n));
  if (dir >= 0)
    close(dir);
  return n;
}

int ni_store_export(const char *data, const char *id_or_name, FILE *to, char *why, size_t cap) {
  struct ni_state *states = NULL;
  int dir = ni_out_dir(data, false, why, cap), n = dir < 0 ? dir : ni_states_read(dir, &states),
      e = n < 0 ? n : -ENOENT, at = n - 1;
  if (dir < 0)
    return dir;
  while (at >= 0 && strcmp(states[at].session.id, id_or_name) && strcmp(states[at].session.name, id_or_name))
    at--;
  if (at >= 0)
    e = ni_file_write(dir, &states[at], to, NULL);
  if (e)
    snprintf(why, cap, "%s: %s", e == -ENOENT ? "no such session" : "it cannot be written",
             e == -ENOENT ? id_or_name : strerror(-e));
  free(states);
  close(dir);
  return e;
}

/* ---- the file ---- */

static void put_time(struct ni_buffer *to, const char *key, int64_t ns) {
  char text[40];
  if (ns)
    ni_buffer_put(to, "\"%s\":\"%s\",", key, ni_utc_text(ns / 1000, 'T', 6, text));
  else
    ni_buffer_put(to, "\"%s\":null,", key);
}

void ni_file_head(struct ni_buffer *to, const struct ni_state *s) {
  ni_buffer_put(to, "{%s\"session_id\":\"%s\",\"session_name\":\"%s\",",
                s->gsprof ? "" : "\"schema\":\"nccl-inspector-session-1\",", s->session.id, s->session.name);
  put_time(to, "start_time", s->session.start_ns);
  ni_buffer_put(to, "\"period_s\":%.9g,", (double)s->period_ns / 1e9);
  if (!s->gsprof)
    ni_buffer_put(to,
                  "\"units\":{\"gpu_util\":\"percent\",\"gpu_memory\":\"percent\",\"dram_bandwidth\":\"GB/"
                  "s\",\"gpu_bandwidth\":\"GB/s\","
                  "\"dram_util\":\"percent\",\"disk_util\":\"percent\",\"nic_rx\":\"GB/s\",\"nic_tx\":\"GB/"
                  "s\",\"nic_link\":\"GB/s\","
                  "\"nic_held\":\"percent\",\"client_cpu\":\"percent\"},");
  ni_buffer_put(to, "\"frames\":[\n");
}

struct row {
  const char *id; /* as JSON has it */
  int len;        /* without its last quote */
  double sum[2];
  uint64_t n[2];
};

static int by_id(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  int c = memcmp(x->id, y->id, (size_t)(x->len < y->len ? x->len : y->len));
  return c ? c : x->len - y->len;
}

/* Columns of one name count together: two clients of a host. */
static void put_summary(struct ni_buffer *to, const struct ni_columns *c, const struct ni_sums *s,
                        enum ni_group group) {
  static const char *const keys[][3] = {{"device", "gpu_util", "gpu_memory"},
                                        {"client", "dram_util", "disk_util"}};
  struct row *row = calloc(c->n + 1, sizeof *row);
  if (!row)
    to->failed = true;
  for (size_t i = 0; row && i < c->n; i++) {
    row[i] = (struct row){.id = c->at[i].id, .len = (int)strlen(c->at[i].id) - 1};
    const char *host = group == NI_CLIENTS ? strrchr(row[i].id, '_') : NULL;
    if (host)
      row[i].len = (int)(host - row[i].id);
    for (int k = 0; k < 2 && i < s->cap[group]; k++) {
      row[i].sum[k] = s->of[group][i].sum[k];
      row[i].n[k] = s->of[group][i].n[k];
    }
  }
  if (row)
    qsort(row, c->n, sizeof *row, by_id);
  ni_buffer_put(to, ",\"summary_by_%s\":{", keys[group][0]);
  for (size_t i = 0; row && i < c->n; i++) {
    if (by_id(&row[i], &row[i + 1 < c->n ? i + 1 : i]) == 0 && i + 1 < c->n) {
      for (int k = 0; k < 2; k++) {
        row[i + 1].sum[k] += row[i].sum[k];
        row[i + 1].n[k] += row[i].n[k];
      }
      continue;
    }
    ni_buffer_put(to, "%.*s\":{", row[i].len, row[i].id);
    for (int k = 0; k < 2; k++) {
      ni_buffer_put(to, "%s\"avg_%s\":", k ? "," : "", keys[group][k + 1]);
      if (row[i].n[k])
        ni_buffer_put(to, "\"%.2f\"", row[i].sum[k] / (double)row[i].n[k]);
      else
        ni_buffer_put(to, "\"nan\"");
    }
    ni_buffer_put(to, i + 1 < c->n ? "},\n" : "}");
  }
  ni_buffer_put(to, "}");
  free(row);
}

void ni_file_tail(struct ni_buffer *to, const struct ni_state *s, const struct ni_columns of[NI_GROUPS],
                  const struct ni_sums *sums) {
  ni_buffer_put(to, "\n],");
  put_time(to, "end_time", s->session.end_ns);
  ni_buffer_put(to, "\"frames_lost\":%llu,\"late_samples\":%llu", (unsigned long long)s->session.frames_lost,
                (unsigned long long)s->session.late);
  put_summary(to, &of[NI_GPUS], sums, NI_GPUS);
  put_summary(to, &of[NI_CLIENTS], sums, NI_CLIENTS);
  ni_buffer_put(to, "}\n");
}

int ni_file_write(int dir, struct ni_state *s, FILE *to, const _Atomic bool *quit) {
  struct ni_past p = {.quit = quit};
  struct ni_buffer text = {0};
  ni_file_head(&text, s);
  if (!text.failed) {
    fwrite(text.text, 1, text.n, to);
    (void)fflush(to);
  } /* whose it is, if we are killed */
  text.n = 0;
  int e = ni_past_read(&p, dir, s->session.id, true, to);
  s->session.late = p.late;
  struct ni_state now = *s;
  now.session.frames_lost += p.bad;
  ni_file_tail(&text, &now, p.of, &p.sums);
  if (!text.failed)
    fwrite(text.text, 1, text.n, to);
  if (e == 0 && (text.failed || fflush(to)))
    e = text.failed ? -ENOMEM : -errno;
  free(text.text);
  ni_past_free(&p);
  return e;
}
