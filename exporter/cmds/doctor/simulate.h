#ifndef NI_DOCTOR_SIMULATE_H
#define NI_DOCTOR_SIMULATE_H

#include "findings.h"

/* A simulated job with this plugin, verified. */
void ni_doctor_simulate(struct ni_doctor *d);

#endif
