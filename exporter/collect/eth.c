#include "source.h"

void ni_eth_find(struct ni_find *f) { (void)f; }
