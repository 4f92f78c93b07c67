#include "hmm.h"

#include "fields.h"
#include "fused.h"
#include "logarithms.h"
#include "scaled.h"
#include "windows.h"

namespace skb::SKB_LEVEL {
namespace {

void subtract_largest(Mat<const double> values, Mat<double> result, Vec<double> largest) {
    const index s = values.cols;
    for (index i = 0; i < values.rows; ++i) {
        const double *row = values.row(i);
        double *out = result.row(i);
        double top = row[0];
        for (index k = 1; k < s; ++k) top = row[k] > top ? row[k] : top;
        largest[i] = top;
        for (index k = 0; k < s; ++k) out[k] = row[k] - top;
    }
}

}  // namespace

extern const HmmKernels hmm_kernels;
const HmmKernels hmm_kernels{subtract_largest, forward, backward, log_pass,
                             viterbi,          windows, fields,   fields_in_blocks,
                             linear_step};

}  // namespace skb::SKB_LEVEL
