#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int ni_tr_fail(struct ni_tr *r, int e, const char *text, ...) {
  va_list ap;
  if (!*r->error_text) {
    va_start(ap, text);
    vsnprintf(r->error_text, sizeof r->error_text, text, ap);
    va_end(ap);
  }
  return e;
}

void ni_tr_free(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_members; i++) {
    free(r->member[i].gap);
    free(r->member[i].open);
    ni_gpu_points_free(&r->member[i].points);
  }
  for (uint32_t i = 0; i < r->n_units; i++) {
    ni_gpu_clock_free(&r->unit[i].clock);
    free(r->unit[i].started);
  }
  for (uint32_t i = 0; i < r->n_with; i++) {
    free(r->with[i].path);
    free(r->with[i].theirs);
    ni_map_free(&r->with[i].places);
  }
  free(r->with);
  free(r->host);
  free(r->process);
  free(r->unit);
  free(r->device);
  free(r->member);
  ni_map_free(&r->instances);
  ni_who_free(&r->who);
  ni_match_free(&r->match);
  ni_match_free(&r->messages);
  ni_sort_free(r->p2p);
  ni_tag_names_free(&r->tags);
  ni_names_free(&r->names);
}
