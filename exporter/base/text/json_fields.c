#include "json_fields.h"

#define PUT(name, type, write)                                                                         \
  void ni_json_member_##name(struct ni_json *j, const char *key, const void *at, const void *context) { \
    (void)context;                                                                                     \
    write(j, key, *(const type *)at);                                                                  \
  }
PUT(u64, uint64_t, ni_json_u64)
PUT(u32, uint32_t, ni_json_u64)
PUT(i64, int64_t, ni_json_i64)
PUT(i32, int32_t, ni_json_i64)
PUT(f64, double, ni_json_f64)
PUT(bool, bool, ni_json_bool)
PUT(text, char *const, ni_json_text)

void ni_json_member_chars(struct ni_json *j, const char *key, const void *at, const void *context) {
  (void)context;
  ni_json_text(j, key, at);
}

void ni_json_fields(struct ni_json *j, const struct ni_json_field *f, size_t n, bool keys, const void *item,
                    const void *context) {
  for (size_t i = 0; i < n; i++) f[i].put(j, keys ? f[i].key : NULL, (const char *)item + f[i].offset, context);
}
