/*
 * Structs as JSON, by a table of their members:
 *
 *   static const struct ni_json_field fields[] = {NI_JSON(ni_host, records), NI_JSON_AS(ni_host, name, "hostname")};
 *   ni_json_fields(j, fields, 2, true, &host, NULL);
 *
 * The type of a member chooses how it is written; the tag is that of its struct. What is worked out has a function of its own
 * (NI_JSON_BY), which gets the struct and the context. Threads: pure, any.
 */
#ifndef NI_JSON_FIELDS_H
#define NI_JSON_FIELDS_H

#include <stddef.h>

#include "json_write.h"

/* key NULL: an element of an array. at: the member, or the struct where the offset is 0. */
typedef void ni_json_put(struct ni_json *j, const char *key, const void *at, const void *context);
/* chars: an array in the struct; text: a pointer, which may be NULL. */
ni_json_put ni_json_member_u64, ni_json_member_u32, ni_json_member_i64, ni_json_member_i32, ni_json_member_f64,
    ni_json_member_text, ni_json_member_chars;

/* Makes such a function of one call: j, key and v, the member, are in its sight. */
#define NI_JSON_FORM(name, type, ...)                                                     \
  void name(struct ni_json *j, const char *key, const void *at, const void *context) {    \
    type const *v = at;                                                                   \
    (void)key, (void)context;                                                             \
    __VA_ARGS__;                                                                          \
  }

struct ni_json_field {
  const char *key;
  ni_json_put *put;
  size_t offset;
};

#define NI_JSON_PUT(member)                                                                                   \
  _Generic((member), uint64_t: ni_json_member_u64, uint32_t: ni_json_member_u32, int64_t: ni_json_member_i64,          \
      int32_t: ni_json_member_i32, double: ni_json_member_f64, const char *: ni_json_member_text, \
      char *: ni_json_member_chars)
#define NI_JSON_AS(tag, member, key) {key, NI_JSON_PUT(((struct tag *)0)->member), offsetof(struct tag, member)}
#define NI_JSON(tag, member) NI_JSON_AS(tag, member, #member)
#define NI_JSON_BY(function, key) {key, function, 0}

/* With their keys; keys false: as elements of an array. */
void ni_json_fields(struct ni_json *j, const struct ni_json_field *f, size_t n, bool keys, const void *item,
                    const void *context);

#endif
