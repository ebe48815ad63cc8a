#include "tags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* "tag 7 layer.3" */
bool ni_tag_line(const struct ni_control_line *c, uint64_t *tag, const char **name) {
  const char *p = c->command;
  char *end;
  if (strcmp(c->source, "file") != 0 && strcmp(c->source, "tags") != 0)
    return false;
  if (strcmp(c->result, "done") != 0 || strncmp(p, "tag", 3) != 0 || !is_blank(p[3]))
    return false;
  for (p += 3; is_blank(*p);)
    p++;
  errno = 0;
  const unsigned long long number = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : 0;
  if (!number || errno || number > NI_TAG_MAX)
    return false;
  if (!is_blank(*end))
    return false;
  for (p = end; is_blank(*p);)
    p++;
  const size_t n = strlen(p);
  if (n < 1 || n > NI_TAG_NAME_MAX)
    return false;
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
      return false;
  *tag = number;
  *name = p;
  return true;
}

static struct ni_tag_name *find_tag(const struct ni_tag_names *t, uint64_t tag) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, ni_hash(0, tag), &at)) != NI_INDEX_NONE;)
    if (t->item[k].tag == tag)
      return &t->item[k];
  return NULL;
}

int ni_tag_names_add(struct ni_tag_names *t, const struct ni_tag_name *x) {
  struct ni_tag_name *old = find_tag(t, x->tag);
  if (old) {
    if (x->ns > old->ns || (x->ns == old->ns && strcmp(x->name, old->name) < 0))
      *old = *x;
    return 0;
  }
  if (t->n >= NI_TAG_NAMES_MAX)
    return 0;
  if (!ni_array_room(t->item, t->n, t->cap))
    return -ENOMEM;
  if (ni_index_add(&t->at_hash, ni_hash(0, x->tag), (uint32_t)t->n) < 0)
    return -ENOMEM;
  t->item[t->n++] = *x;
  return 0;
}

int ni_tag_names_take(struct ni_tag_names *t, const struct ni_control_line *c) {
  struct ni_tag_name x = {.ns = c->ns};
  const char *name;
  if (!ni_tag_line(c, &x.tag, &name))
    return 0;
  memcpy(x.name, name, strlen(name));
  return ni_tag_names_add(t, &x);
}

const char *ni_tag_name(const struct ni_tag_names *t, uint64_t tag) {
  const struct ni_tag_name *x = tag ? find_tag(t, tag) : NULL;
  return x ? x->name : NULL;
}

void ni_tag_names_free(struct ni_tag_names *t) {
  free(t->item);
  ni_index_free(&t->at_hash);
  *t = (struct ni_tag_names){0};
}

bool ni_tags_unresolved(const struct ni_tag_filter *t) { return t->name.n && !t->resolved; }

int ni_tags_resolve(struct ni_tag_filter *t, const struct ni_tag_names *names) {
  t->resolved = true;
  for (size_t i = 0; t->name.n && i < names->n; i++) {
    if (!ni_words_have(&t->name, names->item[i].name))
      continue;
    if (!ni_array_room(t->named, t->n_named, t->cap_named))
      return -ENOMEM;
    t->named[t->n_named++] = names->item[i].tag;
  }
  return 0;
}

/* ---- reading the logs for the names alone ---- */

struct gathered {
  struct ni_tag_names names;
  bool (*stop)(void *);
  void *arg;
};

static int take_control_line(void *arg, struct ni_line *l, uint64_t line_no) {
  return l->kind == NI_LINE_CONTROL ? ni_tag_names_take(arg, &l->control) : 0;
}

static int read_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                     void **result) {
  struct ni_tag_names *x = *result = calloc(1, sizeof *x);
  if (!x)
    return -ENOMEM;
  to->arg = x;
  to->take = take_control_line;
  const int e = ni_scan_file(scan, p->file->path, &p->at, to, NULL);
  return e == -ENOMEM ? e : 0; /* a file that cannot be read is told when it is read for its operations */
}

static void drop_names(void *arg, void *result) {
  ni_tag_names_free(result);
  free(result);
}

static int merge_names(void *arg, const struct ni_scan_part *p, void *result) {
  struct gathered *g = arg;
  const struct ni_tag_names *x = result;
  int e = 0;
  for (size_t i = 0; e == 0 && i < x->n; i++)
    e = ni_tag_names_add(&g->names, &x->item[i]);
  drop_names(NULL, result);
  return e;
}

static bool is_stopped(void *arg) {
  const struct gathered *g = arg;
  return g->stop && g->stop(g->arg);
}

int ni_tags_resolve_by(struct ni_tag_filter *t, const struct ni_scan_plan *plan, unsigned jobs,
                       bool (*stop)(void *), void *arg) {
  struct gathered g = {.stop = stop, .arg = arg};
  int e = 0;
  if (!ni_tags_unresolved(t))
    return 0;
  e = ni_scan_files(&(struct ni_scan_team){.plan = plan,
                                           .jobs = jobs,
                                           .arg = &g,
                                           .part = read_part,
                                           .merge = merge_names,
                                           .drop = drop_names,
                                           .stop = is_stopped});
  if (e == 0)
    e = ni_tags_resolve(t, &g.names);
  ni_tag_names_free(&g.names);
  return e;
}
