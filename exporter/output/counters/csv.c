/* Two sweeps for spreadsheets. */
#include <inttypes.h>
#include <math.h>

#include "exporter/base/text/csv_write.h"
#include "exporter/input/netprof/names.h"
#include "view.h"

/* A figure behind a comma, nothing where there is none. */
static void write_figure(FILE *f, bool there, double x) {
  if (there && !isnan(x))
    fprintf(f, ",%.9g", x);
  else
    putc(',', f);
}

static void write_reading(FILE *f, const struct ni_pair_row *r, const struct ni_reading *of) {
  if (of->state != NI_READ_OK)
    putc(',', f);
  else if (r->what.kind == NI_METRIC_GAUGE)
    fprintf(f, ",%" PRId64, (int64_t)of->value);
  else
    fprintf(f, ",%" PRIu64, of->value);
}

void ni_counters_csv(const struct ni_counters_view *v, FILE *f) {
  char meaning[NI_METRIC_MEANING];
  fputs(
      "source,entity,interface,metric_id,counter,unit,state,wrapped,before,after,diff,seconds,rate,share,"
      "others_rate,unusual,meaning\n",
      f);
  for (size_t i = 0; i < v->pair.n_rows; i++) {
    const struct ni_ranked *k = &v->ranked[i];
    const struct ni_pair_row *r = &v->pair.row[k->row];
    const struct ni_entity *e = v->pair.entity[r->entity].of;
    bool risen = r->change.state == NI_CHANGE_CHANGED;
    uint32_t interface = ni_netprof_interface(e), id = interface ? ni_netprof_id(r->name) : 0;
    fprintf(f, "%s,", ni_source_name(e->source));
    ni_csv_text(f, e->name);
    write_figure(f, interface != 0, interface);
    write_figure(f, id != 0, id);
    putc(',', f);
    ni_csv_text(f, r->name);
    putc(',', f);
    ni_csv_text(f, r->what.unit);
    fprintf(f, ",%s,%d", ni_change_name(r->change.state), r->change.wrapped);
    write_reading(f, r, &r->before);
    write_reading(f, r, &r->after);
    if (r->change.state <= NI_CHANGE_LEVEL)
      fprintf(f, ",%" PRId64, r->change.delta);
    else
      putc(',', f);
    write_figure(f, r->change.seconds > 0, r->change.seconds);
    write_figure(f, risen || r->change.state == NI_CHANGE_NONE, ni_pair_rate(r));
    write_figure(f, risen, ni_pair_share(&v->pair, r));
    write_figure(f, risen, k->usual);
    write_figure(f, risen, k->unusual);
    putc(',', f);
    ni_csv_text(f, ni_counter_meaning(e->source, r->name, meaning));
    putc('\n', f);
  }
}
