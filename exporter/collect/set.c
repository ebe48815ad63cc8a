#include "set.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { BLOCK = 1 << 16 };

void ni_set_free(struct ni_set *s) {
  for (size_t i = 0; i < s->n_blocks; i++)
    free(s->block[i]);
  free(s->block);
  free(s->entity);
  free(s->counter);
  free(s->unread);
  *s = (struct ni_set){0};
}

const char *ni_set_text(struct ni_set *s, const char *text) {
  if (!text)
    return NULL;
  size_t n = strlen(text) + 1;
  if (n > s->left) {
    size_t size = n > BLOCK ? n : BLOCK;
    if (!ni_array_room(s->block, s->n_blocks, s->cap_blocks) || !(s->block[s->n_blocks] = malloc(size))) {
      s->failed = true;
      return "";
    }
    s->n_blocks++;
    s->left = size;
  }
  /* The end of the block is filled first: then what is left says where. */
  char *at = s->block[s->n_blocks - 1] + s->left - n;
  s->left -= n;
  return memcpy(at, text, n);
}

struct ni_entity *ni_set_entity(struct ni_set *s, enum ni_metric_source source, const char *name) {
  if (!ni_array_room(s->entity, s->n_entities, s->cap_entities)) {
    s->failed = true;
    return NULL;
  }
  struct ni_entity *e = &s->entity[s->n_entities++];
  *e = (struct ni_entity){
      .source = (uint8_t)source, .name = ni_set_text(s, name), .first = (uint32_t)s->n_counters, .numa = -1};
  return e;
}

bool ni_set_counter(struct ni_set *s, const char *name) {
  if (!s->n_entities || !ni_array_room(s->counter, s->n_counters, s->cap_counters)) {
    s->failed = true;
    return false;
  }
  struct ni_entity *e = &s->entity[s->n_entities - 1], *last = s->n_entities > 1 ? e - 1 : e;
  struct ni_counter *c = &s->counter[s->n_counters++];
  c->entity = (uint32_t)(s->n_entities - 1);
  /* NICs of a kind have the same counters in the same order: what is known of a name is looked up once. */
  const struct ni_counter *like =
      last->source == e->source && e->n < last->n ? &s->counter[last->first + e->n] : NULL;
  bool is_same = like && strcmp(like->name, name) == 0;
  c->name = is_same ? like->name : ni_set_text(s, name);
  c->what = is_same ? like->what : ni_metric_of((enum ni_metric_source)e->source, name);
  e->n++;
  return true;
}

static void note_unread(struct ni_set *s, const char *path, const char *why, bool skipped) {
  if (!ni_array_room(s->unread, s->n_unread, s->cap_unread)) {
    s->failed = true;
    return;
  }
  const char *p = ni_set_text(s, path);
  s->unread[s->n_unread++] = (struct ni_unread){p, ni_set_text(s, why), skipped};
}

void ni_set_unread(struct ni_set *s, const char *path, const char *why) { note_unread(s, path, why, false); }

void ni_set_skipped(struct ni_set *s, const char *path, const char *why) { note_unread(s, path, why, true); }

size_t ni_set_n_unread(const struct ni_set *s) {
  size_t n = 0;
  NI_EACH(const struct ni_unread, u, s->unread, s->n_unread) n += !u->skipped;
  return n;
}

const char *ni_source_name(unsigned source) {
  static const char *const names[NI_METRIC_SOURCES] = {"cxi", "rh",  "ib",   "eth",    "ethtool",
                                                       "tcp", "gpu", "host", "cxidev", "ibdev"};
  return source < NI_METRIC_SOURCES ? names[source] : NULL;
}

const char *ni_link_state_name(unsigned state) {
  static const char *const names[] = {NULL, "up", "down", "off"};
  return state < sizeof names / sizeof *names ? names[state] : NULL;
}
