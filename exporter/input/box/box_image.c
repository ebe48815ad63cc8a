#include "box_image.h"

#include <string.h>

uint64_t ni_box_get(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id, uint32_t i) {
  const struct ni_box_field *f = &b->field[id];
  uint32_t size = ni_box_elem_bytes[id];
  if ((uint64_t)(i + 1) * size > f->size) return 0;
  const unsigned char *p = base + f->at + (size_t)i * size;
  uint64_t v8;
  uint32_t v4;
  switch (size) {
    case 8: memcpy(&v8, p, 8); return v8;
    case 4: memcpy(&v4, p, 4); return v4;
    default: return *p;
  }
}

unsigned char ni_box_class(const struct ni_box *b, uint32_t page) {
  return page < b->h.class_map.bytes ? b->image[b->h.class_map.at + page] : 0;
}

bool ni_box_ops_class(const struct ni_box *b, unsigned char cls) {
  return cls && cls != b->h.comm_class && cls < 64 && (b->h.op_classes >> cls & 1);
}
