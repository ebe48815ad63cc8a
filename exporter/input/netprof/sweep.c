#include "sweep.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "draft.h"
#include "exporter/base/array.h"
#include "exporter/input/parse/parse.h"
#include "names.h"

/* ---- the text form ---- */

/* A line that is no `value@time` is a counter that could not be read; net_prof's own reader dies of it. */
static bool read_line(struct ni_draft *d, uint32_t nic, const char *name, const char *line) {
  struct ni_reading at[2] = {{.state = NI_READ_UNREADABLE}};
  uint64_t value;
  int64_t ns;
  const char *p = ni_draft_number(line, &value);
  if (p && *p == '@' && (p = ni_draft_stamp(p + 1, &ns)) && !*p)
    at[0] = (struct ni_reading){.value = value, .real_ns = ns, .state = NI_READ_OK};
  return ni_draft_add(d, nic, name, at);
}

static bool read_text(struct ni_draft *d, char *text) {
  uint32_t n = 0;
  for (char *line = text, *next; *line; line = next, n++) {
    char nic[32];
    next = line + strcspn(line, "\n");
    if (*next) *next++ = 0;
    line[strcspn(line, "\r")] = 0;
    snprintf(nic, sizeof nic, "cxi%u", n / NI_NETPROF_NAMES);
    int64_t e = ni_draft_entity(d, NI_METRIC_CXI, nic);
    if (e < 0 || !read_line(d, (uint32_t)e, ni_netprof_name(n % NI_NETPROF_NAMES + 1), line)) return false;
  }
  return n % NI_NETPROF_NAMES == 0 || ni_draft_fail(d, "%u lines: want %d a NIC, as `value@sec.nsec`, in net_prof's order", n, NI_NETPROF_NAMES);
}

/* ---- from the draft to sets ---- */

static bool has_any(const struct ni_draft *d, const uint32_t *order, size_t from, size_t to, int k) {
  for (size_t i = from; i < to; i++)
    if (d->item[order[i]].at[k].state != NI_READ_MISSING) return true;
  return from == to;
}

/* Sweep k: what of the draft it has. first: where each entity's items begin in order. */
static void fill(const struct ni_draft *d, const uint32_t *order, const size_t *first, int k, struct ni_sweep *s) {
  size_t n = 0;
  for (size_t i = 0; i < d->heads.n_entities; i++) {
    const struct ni_entity *h = &d->heads.entity[i];
    struct ni_entity *e;
    if (!has_any(d, order, first[i], first[i + 1], k) || !(e = ni_set_entity(&s->set, (enum ni_metric_source)h->source, h->name))) continue;
    e->link_bytes_s = h->link_bytes_s;
    e->numa = h->numa;
    e->pci = ni_set_text(&s->set, h->pci);
    e->link = ni_set_text(&s->set, h->link);
    e->about = ni_set_text(&s->set, h->about);
    e->warning = ni_set_text(&s->set, h->warning);
    for (size_t x = first[i]; x < first[i + 1]; x++) {
      const struct ni_draft_item *item = &d->item[order[x]];
      if (item->at[k].state == NI_READ_MISSING || !ni_set_counter(&s->set, item->name)) continue;
      s->reading[n] = item->at[k];
      if (d->ahead_ns[i]) s->reading[n].mono_ns = s->reading[n].real_ns + d->ahead_ns[i];
      n++;
    }
  }
  const struct ni_set *said = &d->meta[k].set;
  for (size_t i = 0; i < said->n_unread; i++) ni_set_unread(&s->set, said->unread[i].path, said->unread[i].why);
  s->path = ni_set_text(&s->set, d->meta[k].path);
  s->input_path = ni_set_text(&s->set, d->meta[k].input_path);
  s->started = ni_set_text(&s->set, d->meta[k].started);
  s->finished = ni_set_text(&s->set, d->meta[k].finished);
  s->duration_s = d->meta[k].duration_s;
}

static bool build(const struct ni_draft *d, struct ni_sweep out[2]) {
  size_t entities = d->heads.n_entities, *first = calloc(entities + 2, sizeof *first);
  uint32_t *order = malloc((d->n + 1) * sizeof *order);
  bool fine = first && order;
  if (fine) { /* counted, then laid out: an entity's counters keep their order */
    for (size_t i = 0; i < d->n; i++) first[d->item[i].entity + 2]++;
    for (size_t i = 2; i < entities + 2; i++) first[i] += first[i - 1];
    for (size_t i = 0; i < d->n; i++) order[first[d->item[i].entity + 1]++] = (uint32_t)i;
  }
  for (int k = 0; k < d->sweeps && fine; k++) {
    fine = (out[k].reading = malloc((d->n + 1) * sizeof *out[k].reading)) != NULL;
    if (fine) fill(d, order, first, k, &out[k]);
    fine = fine && !out[k].set.failed;
  }
  free(first);
  free(order);
  return fine;
}

/* ---- the file ---- */

/* All of it, inflated where it is gzip, with padding behind it and a NUL; NULL: why is said. */
static char *load(struct ni_draft *d, const char *path, size_t *len) {
  gzFile f = gzopen(path, "rbe");
  char *text = NULL;
  size_t n = 0, cap = 0;
  int got = 1, e = errno;
  while (f && got > 0) {
    if (n > NI_SWEEP_BYTES) got = -1, ni_draft_fail(d, "more than %d MiB of text: no sweep is as large", NI_SWEEP_BYTES >> 20);
    else if (!ni_array_room(text, n + (1 << 20), cap)) got = -1, ni_draft_fail(d, "no memory");
    else if ((got = gzread(f, text + n, (unsigned)(cap - n - NI_PARSE_PADDING))) > 0) n += (size_t)got;
  }
  if (!f) {
    ni_draft_fail(d, "%s", strerror(e));
  } else {
    const char *said = gzerror(f, &e);
    if (e) ni_draft_fail(d, "%s", e == Z_ERRNO ? strerror(errno) : e == Z_BUF_ERROR ? "the gzip file is cut" : said);
    gzclose(f);
  }
  if (text) memset(text + n, 0, NI_PARSE_PADDING);
  *len = n;
  if (!*d->why) return text;
  free(text);
  return NULL;
}

int ni_sweep_read(struct ni_sweep out[2], const char *path, char *why, size_t cap) {
  struct ni_draft d = {.meta = {{.path = path, .duration_s = NAN}, {.path = path, .duration_s = NAN}}, .sweeps = 1, .why = why, .why_cap = cap};
  size_t len;
  out[0] = out[1] = (struct ni_sweep){0};
  *why = 0;
  char *text = load(&d, path, &len);
  if (text) {
    char c = text[strspn(text, " \t\r\n")];
    if (memchr(text, 0, len)) ni_draft_fail(&d, "a byte 0 at %zu: neither JSON nor net_prof's text", strlen(text));
    else if (c == '{' || c == '[') ni_draft_json(&d, text, len);
    else if (isdigit((unsigned char)c) || c == '-') read_text(&d, text);
    else ni_draft_fail(&d, "neither JSON nor net_prof's text (`value@sec.nsec` a line)");
    if (!*why && !d.heads.n_entities) ni_draft_fail(&d, "no counters in it");
    if (!*why && !build(&d, out)) ni_draft_fail(&d, "no memory");
  }
  free(text);
  free(d.item);
  ni_index_free(&d.entities);
  ni_index_free(&d.items);
  ni_set_free(&d.heads);
  ni_set_free(&d.meta[0].set);
  ni_set_free(&d.meta[1].set);
  if (!*why) return d.sweeps;
  ni_sweep_free(&out[0]);
  ni_sweep_free(&out[1]);
  return -EINVAL;
}

void ni_sweep_free(struct ni_sweep *s) {
  ni_set_free(&s->set);
  free(s->reading);
  *s = (struct ni_sweep){0};
}
