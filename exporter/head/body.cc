#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {
#include "exporter/base/text/json_write.h"
#include "body.h"
}

namespace dom = simdjson::dom;

namespace {

/* For free(); without memory nothing. */
void show(ni_body *b, const std::string &json) { b->input = strdup(json.c_str()); }

/* A body that is no JSON, as a text. */
std::string quoted(const char *text, size_t len) {
  const std::string ends(text, strnlen(text, len));
  std::string out = "\"";
  char c[8];
  for (const char *s = ends.c_str(); *s;)
    out.append(c, ni_json_char(c, &s));
  return out + '"';
}

void wrong(ni_body *b, const char *type, const char *place, const char *message) {
  b->type = type, b->place = place, b->message = message;
}

/* FastAPI takes JSON alone by its content type, and says what is no object. */
bool object_of(ni_body *b, dom::parser &parser, const char *text, size_t len, const char *content_type,
               dom::object *o) {
  dom::element e;
  if (len == 0)
    return wrong(b, "missing", nullptr, "Field required"), false;
  if (!content_type || !strstr(content_type, "json"))
    return show(b, quoted(text, len)),
           wrong(b, "model_attributes_type", nullptr,
                 "Input should be a valid dictionary or object to extract fields from"),
           false;
  if (parser.parse(text, len).get(e))
    return show(b, "{}"), wrong(b, "json_invalid", "", "JSON decode error"), false;
  if (e.get(*o))
    return show(b, simdjson::minify(e)),
           wrong(b, "model_attributes_type", nullptr,
                 "Input should be a valid dictionary or object to extract fields from"),
           false;
  return true;
}

}  // namespace

extern "C" void ni_body_name(ni_body *b, const char *text, size_t len, const char *content_type,
                             bool needed) {
  dom::parser parser;
  dom::object o;
  dom::element e;
  std::string_view name;
  *b = {};
  if ((len == 0 && !needed) || !object_of(b, parser, text, len, content_type, &o))
    return;
  bool none = o["name"].get(e) != simdjson::SUCCESS;
  /* it would end all */
  if (none && !needed && o.size() > 0)
    return show(b, simdjson::minify(o)), wrong(b, "missing", "name", "Field required");
  if (none || e.is_null())
    return;
  if (e.get(name))
    return show(b, simdjson::minify(e)), wrong(b, "string_type", "name", "Input should be a valid string");
  std::string safe(name.substr(0, sizeof b->name - 1));
  for (char &c : safe)
    c = c ? c : '/'; /* no name has a NUL */
  memcpy(b->name, safe.c_str(), safe.size() + 1);
  b->given = !safe.empty();
}
