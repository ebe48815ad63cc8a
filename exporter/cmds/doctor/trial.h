#ifndef NI_DOCTOR_TRIAL_H
#define NI_DOCTOR_TRIAL_H

#include "findings.h"

/*
 * The plugin's own start, one operation and end, under these settings: what it says, and whether it writes.
 */
void ni_doctor_trial(struct ni_doctor *d);

#endif
