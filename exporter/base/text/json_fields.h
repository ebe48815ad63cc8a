/*
 * Structs as JSON, by a table of their members:
 *
 *   static const struct ni_json_field fields[] = {NI_JSON(ni_host, records),
 *                                                NI_JSON_AS(ni_host, name, "hostname")};
 *   ni_json_fields(j, fields, 2, true, &host, NULL);
 *
 * The type of a member chooses how it is written; the tag is that of its struct. What is worked out has a
 * function of its own (NI_JSON_BY), which gets the struct and the context. Threads: pure, any.
 */
#ifndef NI_JSON_FIELDS_H
#define NI_JSON_FIELDS_H

#include <stddef.h>

#include "json_write.h"

/* key NULL: an element of an array. at: the member, or the struct where the offset is 0. */
typedef void ni_json_put(struct ni_json *j, const char *key, const void *at, const void *context);
/* chars: an array in the struct, some: NULL where it is ""; text: a pointer, which may be NULL; utc: Unix ns,
 * NULL for 0; rounded: a double with six digits. */
ni_json_put ni_json_member_u64, ni_json_member_u32, ni_json_member_i64, ni_json_member_i32,
    ni_json_member_f64, ni_json_member_bool, ni_json_member_text, ni_json_member_chars, ni_json_member_some,
    ni_json_member_utc, ni_json_member_rounded;

/* Makes such a function of one call: j, key and v, the member, are in its sight. */
#define NI_JSON_FORM(name, type, ...) \
  void name(struct ni_json *j, const char *key, const void *at, const void *context) { \
    type const *v = at; \
    (void)key, (void)context; \
    __VA_ARGS__; \
  }

struct ni_json_field {
  const char *key;
  ni_json_put *put;
  size_t offset;
};

/* A text by its address: an array would look like a pointer else. */
#define NI_JSON_PUT(member) \
  _Generic(&(member), \
      char **: ni_json_member_text, \
      default: _Generic((member), \
          uint64_t: ni_json_member_u64, \
          uint32_t: ni_json_member_u32, \
          int64_t: ni_json_member_i64, \
          int32_t: ni_json_member_i32, \
          double: ni_json_member_f64, \
          bool: ni_json_member_bool, \
          const char *: ni_json_member_text, \
          char *: ni_json_member_chars))
#define NI_JSON_AS(tag, member, key) \
  {key, NI_JSON_PUT(((struct tag *)0)->member), offsetof(struct tag, member)}
#define NI_JSON(tag, member) NI_JSON_AS(tag, member, #member)
#define NI_JSON_FROM(function, tag, member, key) {key, function, offsetof(struct tag, member)}
#define NI_JSON_BY(function, key) {key, function, 0}

/* Writes the fields with their keys; keys false: as elements of an array. */
void ni_json_fields(struct ni_json *j, const struct ni_json_field *f, size_t n, bool keys, const void *item,
                    const void *context);
#define NI_JSON_ALL(j, table, item, context) \
  ni_json_fields(j, table, sizeof(table) / sizeof *(table), true, item, context)
/* An array of objects, one for each of n items of `size` bytes. */
void ni_json_objects(struct ni_json *j, const char *key, const struct ni_json_field *f, size_t n_fields,
                     const void *items, size_t size, size_t n, const void *context);
#define NI_JSON_OBJECTS(j, key, table, items, n, context) \
  ni_json_objects(j, key, table, sizeof(table) / sizeof *(table), items, sizeof *(items), n, context)
/* An array of texts. */
void ni_json_texts(struct ni_json *j, const char *key, char *const *text, size_t n);

#endif
