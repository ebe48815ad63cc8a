#include "json_fields.h"

NI_JSON_FORM(ni_json_member_u64, uint64_t, ni_json_u64(j, key, *v))
NI_JSON_FORM(ni_json_member_u32, uint32_t, ni_json_u64(j, key, *v))
NI_JSON_FORM(ni_json_member_i64, int64_t, ni_json_i64(j, key, *v))
NI_JSON_FORM(ni_json_member_i32, int32_t, ni_json_i64(j, key, *v))
NI_JSON_FORM(ni_json_member_f64, double, ni_json_f64(j, key, *v))
NI_JSON_FORM(ni_json_member_text, char *, ni_json_text(j, key, *v))
NI_JSON_FORM(ni_json_member_chars, char, ni_json_text(j, key, v))
NI_JSON_FORM(ni_json_member_some, char, ni_json_text(j, key, *v ? v : NULL))
NI_JSON_FORM(ni_json_member_bool, bool, ni_json_bool(j, key, *v))
NI_JSON_FORM(ni_json_member_utc, int64_t, ni_json_utc(j, key, *v))
NI_JSON_FORM(ni_json_member_rounded, double, ni_json_rounded(j, key, *v, 6))

void ni_json_fields(struct ni_json *j, const struct ni_json_field *f, size_t n, bool keys, const void *item,
                    const void *context) {
  for (size_t i = 0; i < n; i++)
    f[i].put(j, keys ? f[i].key : NULL, (const char *)item + f[i].offset, context);
}

void ni_json_objects(struct ni_json *j, const char *key, const struct ni_json_field *f, size_t n_fields,
                     const void *items, size_t size, size_t n, const void *context) {
  NI_JSON_ARRAY (j, key)
    for (size_t i = 0; i < n; i++)
      NI_JSON_OBJECT (j, NULL) {
        ni_json_fields(j, f, n_fields, true, (const char *)items + i * size, context);
      }
}

void ni_json_texts(struct ni_json *j, const char *key, char *const *text, size_t n) {
  NI_JSON_ARRAY (j, key)
    for (size_t i = 0; i < n; i++)
      ni_json_text(j, NULL, text[i]);
}
