/*
 * For Elasticsearch and OpenSearch: two lines a record, what to do and the document. The document's id is
 * made of what names the record, so sending a file twice changes nothing.
 */
#include <errno.h>

#include "row.h"

int ni_bulk_row(struct ni_convert_out *o, const struct ni_convert_row *row) {
  FILE *f = ni_convert_stream(o);
  struct ni_json j;
  char id[256];
  if (!f)
    return -ENOMEM;
  snprintf(id, sizeof id, "%s.%lld.%lld.%.48s.%llu.%llu.%lld", row->id, (long long)row->rank,
           (long long)row->pid, row->coll, (unsigned long long)row->sn, (unsigned long long)row->msg_bytes,
           (long long)(row->root == NI_NOT_STATED ? -1 : row->root));
  ni_json_open(&j, f, NULL);
  NI_JSON_OBJECT (&j, "index")
    ni_json_text(&j, "_id", id);
  ni_json_close(&j);
  ni_json_open(&j, f, NULL);
  ni_convert_fields(&j, row, false);
  ni_json_close(&j);
  return ni_convert_cut(o);
}

void ni_bulk_template(FILE *f) {
  struct ni_json j;
  ni_json_open(&j, f, NULL);
  NI_JSON_ARRAY (&j, "index_patterns")
    ni_json_text(&j, NULL, "nccl-inspector*");
  ni_json_object(&j, "template");
  ni_json_object(&j, "mappings");
  ni_json_bool(&j, "dynamic", false);
  ni_json_object(&j, "properties");
  for (size_t i = 0; i < ni_convert_n_types; i++)
    NI_JSON_OBJECT (&j, ni_convert_types[i].key)
      ni_json_text(&j, "type", ni_convert_types[i].type);
  for (int i = 0; i < 4; i++)
    ni_json_end_object(&j);
  ni_json_finish(&j);
}
