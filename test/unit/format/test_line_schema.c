/*
 * schemas/log-line.schema.json against format/lines.def, from which it is made: `test_line_schema --json`
 * prints it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/events.h"

#define PATH "schemas/log-line.schema.json"

/* What JSON has for a type: its name, whether it can be null by itself, and what else is true of it. */
#define COUNT ",\"minimum\":0,\"maximum\":9223372036854775807"
#define J_U64 "integer", false, COUNT
#define J_U32 "integer", false, COUNT
#define J_I32 "integer", false, ""
#define J_RANK "integer", false, ",\"minimum\":-1"
#define J_I64 "integer", false, ""
#define J_SN "integer", true, COUNT
#define J_NS "integer", true, COUNT
#define J_I32N "integer", true, COUNT
#define J_RANKN "integer", true, ",\"minimum\":-1"
#define J_OFFSET "integer", true, ""
#define J_BOOL "boolean", false, ""
#define J_STR "string", false, ""
#define J_WORD "string", false, ""
#define J_NAMED "string", false, ""
#define J_HASH "string", false, ",\"pattern\":\"^0x[0-9a-f]{1,16}$\""
#define J_TIMING "string", false, ",\"enum\":[\"kernel_gpu\",\"kernel_cpu\",\"collective_cpu\"]"
#define J_SRC "string", false, ",\"enum\":[\"api\",\"ce\"]"
#define J_OBSERVED "string", false, ",\"const\":\"observed\""
#define J_US "number", true, ""
#define J_F64 "number", true, ""
#define J_BW "number", true, ""
#define J_BY "object", false, ",\"additionalProperties\":{\"type\":\"integer\",\"minimum\":0}"
#define J_HIST \
  "object", false, \
      ",\"propertyNames\":{\"pattern\":\"^[0-9]+$\"},\"additionalProperties\":{\"type\":\"integer\"," \
      "\"minimum\":0}"
#define J_PAIRS "object", false, ",\"additionalProperties\":{\"type\":\"string\"}"
#define J_NUMBERS "array", false, ",\"items\":{\"type\":[\"integer\",\"null\"]}"
enum { LIST = 1, ONE };
#define HOW_OBJECT ONE
#define HOW_TRACE_SN ONE
#define HOW_TRACE_TS ONE
#define HOW_EVENTS LIST
#define HOW_STEPS LIST
#define HOW_METRICS LIST

/* When it is written. */
enum { ALWAYS = 2, SOMETIMES = 1, NEVER = 0 };
#define KNOWN(x) ALWAYS
#define HAS(x) SOMETIMES
#define IF(condition) SOMETIMES
enum { REQ, OPT, NUL };

/* An object, and after it its keys. */
static const struct row {
  const char *object, *key, *type;
  bool null;
  const char *more, *of; /* of: the object that it holds */
  int how, when, read;
  const char *unit, *present, *meaning;
} rows[] = {
#define OBJECT(name, ...) {.object = #name},
#define PART(name, tag) {.object = #name},
#define KEY(k, t, member, read, when, u, p, m) {NULL, k, J_##t, NULL, 0, when, read, u, p, m},
#define OBJ(k, how, name, member, has, when, p, m) \
  {NULL, k, "", false, "", #name, HOW_##how, when, OPT, "", p, m},
#define STAMP(k, name, tag, member, u, m) {NULL, k, J_U64, NULL, 0, ALWAYS, REQ, u, "", m},
#include "format/lines.def"
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const struct kind {
  const char *key, *object;
} kinds[] = {
#define OPERATION(key, name, flags) {key, #name},
#define KIND(key, function, tag, member, name, form, kind) {key, #name},
#include "format/lines.def"
};

static void put_text(FILE *f, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      putc('\\', f);
    putc(*text, f);
  }
}

static void put_key(FILE *f, const struct row *r) {
  fprintf(f, "        \"%s\": {", r->key);
  if (r->how == LIST)
    fprintf(f, "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/%s\"}", r->of);
  else if (r->how == ONE)
    fprintf(f, "\"$ref\":\"#/$defs/%s\"", r->of);
  else if (strstr(r->more, "\"enum\"")) /* a null would have to stand in it */
    fprintf(f, "\"type\":\"%s\"%s", r->type, r->more);
  else if (r->null || r->read == NUL)
    fprintf(f, "\"type\":[\"%s\",\"null\"]%s", r->type, r->more);
  else
    fprintf(f, "\"type\":\"%s\"%s", r->type, r->more);
  if (*r->meaning || *r->unit || *r->present) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", r->meaning,
             *r->meaning && (*r->unit || *r->present) ? " (" : "", r->unit,
             *r->unit && *r->present ? "; " : "", *r->present ? "when: " : "", r->present,
             *r->meaning && (*r->unit || *r->present) ? ")" : "");
    fputs(",\"description\":\"", f);
    put_text(f, text);
    putc('"', f);
  }
  putc('}', f);
}

static void put_object(FILE *f, size_t at) {
  const char *comma = "";
  fprintf(f, "    \"%s\": {\n      \"type\": \"object\",\n      \"properties\": {\n", rows[at].object);
  for (size_t i = at + 1; i < N_ROWS && rows[i].key; i++) {
    if (rows[i].when == NEVER)
      continue;
    fputs(comma, f);
    put_key(f, &rows[i]);
    comma = ",\n";
  }
  fputs("\n      },\n      \"required\": [", f);
  comma = "";
  for (size_t i = at + 1; i < N_ROWS && rows[i].key; i++) {
    if (rows[i].when != ALWAYS)
      continue;
    fprintf(f, "%s\"%s\"", comma, rows[i].key);
    comma = ", ";
  }
  fputs("]\n    }", f);
}

static char *schema(void) {
  char *out = NULL;
  size_t n;
  FILE *f = open_memstream(&out, &n);
  fputs(
      "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"$id\": "
      "\"urn:nccl-inspector:log-line\",\n"
      "  \"title\": \"A line of the log\",\n  \"description\": \"Made from format/lines.def; docs/format.md "
      "says it in words. Header, "
      "metadata and exactly one kind.\",\n  \"type\": \"object\",\n  \"required\": [\"header\", "
      "\"metadata\"],\n"
      "  \"minProperties\": 3,\n  \"maxProperties\": 3,\n  \"properties\": {\n    \"header\": {\"$ref\": "
      "\"#/$defs/header\"},\n"
      "    \"metadata\": {\"$ref\": \"#/$defs/metadata\"}",
      f);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    fprintf(f, ",\n    \"%s\": {\"$ref\": \"#/$defs/%s\"}", kinds[i].key, kinds[i].object);
  fputs("\n  },\n  \"$defs\": {\n", f);
  bool first = true;
  for (size_t i = 0; i < N_ROWS; i++) {
    if (!rows[i].object || !strcmp(rows[i].object, "recovered"))
      continue; /* its keys are those of process */
    if (!first)
      fputs(",\n", f);
    first = false;
    put_object(f, i);
  }
  fputs("\n  }\n}\n", f);
  fclose(f);
  return out;
}

static void the_schema_has_the_keys(void **state) {
  static char file[262144];
  (void)state;
  FILE *f = fopen(PATH, "r");
  if (!f)
    skip(); /* run from elsewhere */
  file[fread(file, 1, sizeof file - 1, f)] = 0;
  fclose(f);
  char *want = schema();
  if (strcmp(want, file) != 0)
    print_error("%s is not what lines.def says: test_line_schema --json prints it\n", PATH);
  assert_true(strcmp(want, file) == 0);
  free(want);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--json")) {
    fputs(schema(), stdout);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_schema_has_the_keys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
