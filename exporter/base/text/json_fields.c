#include "json_fields.h"

NI_JSON_FORM(ni_json_member_u64, uint64_t, ni_json_u64(j, key, *v))
NI_JSON_FORM(ni_json_member_u32, uint32_t, ni_json_u64(j, key, *v))
NI_JSON_FORM(ni_json_member_i64, int64_t, ni_json_i64(j, key, *v))
NI_JSON_FORM(ni_json_member_i32, int32_t, ni_json_i64(j, key, *v))
NI_JSON_FORM(ni_json_member_f64, double, ni_json_f64(j, key, *v))
NI_JSON_FORM(ni_json_member_text, char *, ni_json_text(j, key, *v))
NI_JSON_FORM(ni_json_member_chars, char, ni_json_text(j, key, v))

void ni_json_fields(struct ni_json *j, const struct ni_json_field *f, size_t n, bool keys, const void *item,
                    const void *context) {
  for (size_t i = 0; i < n; i++) f[i].put(j, keys ? f[i].key : NULL, (const char *)item + f[i].offset, context);
}
