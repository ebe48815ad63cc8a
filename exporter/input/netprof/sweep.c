#include "sweep.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "draft.h"
#include "exporter/base/array.h"
#include "exporter/input/parse/parse.h"
#include "names.h"

/* ---- the text form ---- */

/* A line that is no `value@time` is a counter that could not be read; net_prof's own reader dies of it. */
static bool read_text(struct ni_draft *d, char *text) {
  uint32_t n = 0;
  for (char *line = text, *next; *line; line = next, n++) {
    struct ni_reading at[2] = {{.state = NI_READ_UNREADABLE}, {.state = NI_READ_MISSING}};
    uint64_t value;
    int64_t ns;
    char nic[32];
    next = line + strcspn(line, "\n");
    if (*next) *next++ = 0;
    line[strcspn(line, "\r")] = 0;
    const char *p = ni_draft_number(line, &value);
    if (p && *p == '@' && (p = ni_draft_stamp(p + 1, &ns)) && !*p)
      at[0] = (struct ni_reading){.value = value, .real_ns = ns, .state = NI_READ_OK};
    snprintf(nic, sizeof nic, "cxi%u", n / NI_NETPROF_NAMES);
    int64_t e = ni_draft_entity(d, NI_METRIC_CXI, nic);
    if (e < 0 || !ni_draft_add(d, (uint32_t)e, ni_netprof_name(n % NI_NETPROF_NAMES + 1), at)) return false;
  }
  return n % NI_NETPROF_NAMES == 0 || ni_draft_fail(d, "%u lines: want %d a NIC, as `value@sec.nsec`, in net_prof's order", n, NI_NETPROF_NAMES);
}

/* ---- from the draft to sets ---- */

/* Sweep k: what of the draft it has. An entity of which no sweep has a counter is in both. */
static bool fill(struct ni_draft *d, int k) {
  struct ni_sweep *s = &d->out[k];
  struct ni_set *set = &s->set;
  if (!(s->reading = malloc((d->n_items + 1) * sizeof *s->reading))) return false;
  for (struct ni_draft_owner *from = d->entity; from < d->entity + d->n_entities; from++) {
    if (!from->n[k] && from->n[!k]) continue;
    struct ni_entity *e = ni_set_entity(set, (enum ni_metric_source)from->of.source, from->of.name);
    if (!e) return false;
    from->of.first = e->first;
    *e = from->of;
    for (uint32_t i = from->first; i; i = d->item[i - 1].next) {
      const struct ni_draft_item *item = &d->item[i - 1];
      if (item->at[k].state == NI_READ_MISSING) continue;
      if (!ni_set_counter(set, item->name)) return false;
      struct ni_reading *r = &s->reading[set->n_counters - 1];
      *r = item->at[k];
      int64_t mono; /* what no clock can show is no time */
      if (from->ahead_ns && !__builtin_add_overflow(r->real_ns, from->ahead_ns, &mono) && mono > 0) r->mono_ns = mono;
    }
  }
  return !set->failed;
}

/* ---- the file ---- */

/* All of it, inflated where it is gzip, with padding behind it and a NUL. NULL, or a part: why is said. */
static char *load(struct ni_draft *d, const char *path, size_t *len) {
  char *text = NULL;
  size_t n = 0, cap = 0;
  int got = 1, e = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that nobody writes to is empty */
  if (fd >= 0) fcntl(fd, F_SETFL, O_RDONLY);
  gzFile f = fd >= 0 ? gzdopen(fd, "rb") : NULL;
  if (!f) ni_draft_fail(d, "%s", strerror(errno));
  if (!f && fd >= 0) close(fd);
  while (f && got > 0 && !*d->why) {
    if (n > NI_SWEEP_BYTES) ni_draft_fail(d, "more than %d MiB of text: no sweep is as large", NI_SWEEP_BYTES >> 20);
    else if (!ni_array_room(text, n + (1 << 20), cap)) ni_draft_fail(d, "no memory");
    else if ((got = gzread(f, text + n, (unsigned)(cap - n - NI_PARSE_PADDING))) > 0) n += (size_t)got;
  }
  const char *said = f ? gzerror(f, &e) : "";
  if (e) ni_draft_fail(d, "%s", e == Z_ERRNO ? strerror(errno) : e == Z_BUF_ERROR ? "the gzip file is cut" : said);
  if (f) gzclose(f);
  if (text) memset(text + n, 0, NI_PARSE_PADDING);
  *len = n;
  return text;
}

int ni_sweep_read(struct ni_sweep out[2], const char *path, char *why, size_t cap) {
  struct ni_draft d = {.out = out, .sweeps = 1, .why = why, .why_cap = cap};
  size_t len;
  out[0] = out[1] = (struct ni_sweep){.duration_s = NAN};
  out[0].path = out[1].path = ni_set_text(&out[0].set, path);
  *why = 0;
  char *text = load(&d, path, &len);
  if (!*why) {
    char c = text[strspn(text, " \t\r\n")];
    if (memchr(text, 0, len)) ni_draft_fail(&d, "a byte 0 at %zu: neither JSON nor net_prof's text", strlen(text));
    else if (c == '{' || c == '[') ni_draft_json(&d, text, len);
    else if (isdigit((unsigned char)c) || c == '-') read_text(&d, text);
    else ni_draft_fail(&d, "neither JSON nor net_prof's text (`value@sec.nsec` a line)");
    if (!*why && !d.n_entities) ni_draft_fail(&d, "no counters in it");
    for (int k = 0; k < d.sweeps && !*why; k++)
      if (!fill(&d, k)) ni_draft_fail(&d, "no memory");
  }
  free(text);
  free(d.entity);
  free(d.item);
  ni_index_free(&d.entities);
  ni_index_free(&d.items);
  if (*why || d.sweeps == 1) ni_sweep_free(&out[1]);
  if (*why) ni_sweep_free(&out[0]);
  return *why ? -EINVAL : d.sweeps;
}

void ni_sweep_free(struct ni_sweep *s) {
  ni_set_free(&s->set);
  free(s->reading);
  *s = (struct ni_sweep){0};
}
