/* States of the metrics engine for another process, and back (base/pack.h).
 *
 * Only what was counted and added up travels; what does not depend on the data is set up again by
 * whoever reads. A state that came this way gives the same bits in every merge and at the end. */
#ifndef METRIC_PACK_H
#define METRIC_PACK_H

#include "base/pack.h"
#include "metric/kept.h"
#include "plumb/metric.h"

void metric_pack_spec(struct pack *pack, struct plumb_metric_spec *spec);

/* Reading: state was just made by plumb_metric_new with the arguments that the other one had. */
void metric_pack_state(struct pack *pack, struct plumb_metric_state *state);

/* Reading: all zero before. */
void metric_pack_stats(struct pack *pack, struct stats_state *stats);

/* Reading: all zero before, with an empty sketch where the other one has one. */
void metric_pack_kept(struct pack *pack, struct kept_state *kept);

#endif
