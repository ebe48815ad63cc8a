/*
 * The lines of detail that changes while the job runs, and of what stays when records are left out.
 */
#include "control_write.h"

#include "hist.h"
#include "line_begin.h"

size_t ni_format_control(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                         const struct ni_control_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, 7 * NI_JSON_STRING_MAX_BYTES + 1024);
  if (!p) return 0;
  STR("\"control\":{\"source\":", in->source);
  if (in->file) {
    STR(",\"file\":", in->file);
    U64(",\"line\":", in->line);
  }
  STR(",\"command\":", in->command);
  if (in->mark) STR(",\"mark\":", in->mark);
  STR(",\"result\":", in->result);
  STR(",\"why\":", in->why);
  STR(",\"events\":", in->events);
  FLAG(",\"verbose\":", in->verbose);
  U64(",\"sample\":", in->sample);
  U64(",\"ns\":", in->ns);
  return end_line(buf, p);
}

#define HIST_MAX (NI_HIST_BUCKETS * 36) /* "<20 digits>":<10 digits>, */

size_t ni_format_rollup(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                        const struct ni_rollup_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX + HIST_MAX);
  if (!p) return 0;
  STR("\"rollup\":{\"kind\":", kind_name(in->kind));
  STR(",\"func\":", in->func);
  U64(",\"msg_size_bytes\":", in->msg_bytes);
  if (in->msg_to_bytes) U64(",\"msg_size_to_bytes\":", in->msg_to_bytes);
  STR(",\"timing_source\":", ni_timing_names[in->timing < NI_TIMING_COUNT ? in->timing : 0]);
  U64(",\"from_ns\":", in->from_ns);
  U64(",\"to_ns\":", in->to_ns);
  U64(",\"count\":", in->count);
  U64(",\"sum_bytes\":", in->sum_bytes);
  U64(",\"sum_ns\":", in->sum_ns);
  U64(",\"min_ns\":", in->min_ns);
  U64(",\"max_ns\":", in->max_ns);
  if (!in->hist) return end_line(buf, p);
  p = LIT(p, ",\"hist\":{");
  bool first = true;
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++) {
    if (!in->hist[i]) continue;
    if (!first) *p++ = ',';
    first = false;
    *p++ = '"';
    p = ni_json_put_u64(p, ni_hist_edge(i));
    p = LIT(p, "\":");
    p = ni_json_put_u64(p, in->hist[i]);
  }
  *p++ = '}';
  return end_line(buf, p);
}
