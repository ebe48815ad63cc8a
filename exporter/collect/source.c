#include "source.h"

#include "exporter/base/array.h"

struct ni_entity *ni_find_entity(struct ni_find *f, enum ni_metric_source source, const char *name) {
  const struct ni_wanted *w = f->wanted;
  if (w->sources && !(w->sources >> source & 1)) return NULL;
  if (w->entities && !ni_metric_fits_any(w->entities, name)) return NULL;
  return ni_set_entity(f->set, source, name);
}

bool ni_find_named(const struct ni_find *f, const char *name) {
  return f->wanted->counters && ni_metric_fits_any(f->wanted->counters, name);
}

bool ni_find_asked(const struct ni_find *f, enum ni_metric_source source, const char *name) {
  return f->wanted->all || ni_metric_short(source, name) || ni_find_named(f, name);
}

bool ni_find_counter(struct ni_find *f, const char *name) {
  enum ni_metric_source source = (enum ni_metric_source)f->set->entity[f->set->n_entities - 1].source;
  return ni_find_asked(f, source, name) && ni_set_counter(f->set, name);
}

void ni_find_reader(struct ni_find *f, struct ni_reader *r) {
  const struct ni_entity *e = &f->set->entity[f->set->n_entities - 1];
  r->first = e->first;
  r->n = e->n;
  if (!e->n || !ni_array_room(f->reader, f->n_readers, f->cap_readers)) {
    if (e->n) f->set->failed = true;
    else if (!e->link) f->set->n_entities--;
    r->close(r);
  } else {
    f->reader[f->n_readers++] = r;
  }
}
