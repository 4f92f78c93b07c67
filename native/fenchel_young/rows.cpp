// Many rows at a time, without learning.
#include "rows.h"

#include "../common/vexp.h"
#include "losses.h"

namespace skb::SKB_LEVEL {
namespace {

// Elementary steps of one row, roughly.
inline index steps(index n) { return 100 * n + 1; }

void exponential(Vec<const double> x, Vec<double> out) {
    for (index k = 0; k < x.size; ++k) out[k] = exp_nonpositive(x[k]);
}

void predict_rows(int loss, double mu, Mat<const double> theta, Mat<double> u,
                  Memory memory, Pulse &pulse) {
    with_loss(loss, [&](auto kind) {
        for (index i = 0; i < theta.rows; ++i) {
            predict<kind.value>(mu, theta.row(i), theta.cols, u.row(i), memory);
            if (stops(pulse, steps(theta.cols))) return;
        }
    });
}

void respond_rows(int loss, double mu, Mat<const double> theta, Mat<const Target> targets,
                  Vec<double> values, Mat<double> residual, Memory memory, Pulse &pulse) {
    double *u = take<double>(memory, theta.cols);
    with_loss(loss, [&](auto kind) {
        for (index i = 0; i < theta.rows; ++i) {
            values[i] = respond<kind.value>(mu, theta.row(i), theta.cols, targets.row(i),
                                            targets.cols, u, residual.row(i), memory);
            if (stops(pulse, steps(theta.cols))) return;
        }
    });
}

void nearest_rows(int structure, Mat<const double> u, Mat<Target> vertices, Memory memory,
                  Pulse &pulse) {
    with_structure(structure, [&](auto kind) {
        using Polytope = typename PolytopeOf<kind.value>::type;
        for (index i = 0; i < u.rows; ++i) {
            Polytope::nearest(u.row(i), u.cols, vertices.row(i), vertices.cols, memory);
            if (stops(pulse, steps(u.cols))) return;
        }
    });
}

void decode_rows(int structure, int decoding, Mat<const double> u,
                 Mat<const double> uniforms, Mat<Target> plays, Mat<double> means,
                 Memory memory, Pulse &pulse) {
    with_structure(structure, [&](auto kind) {
        using Polytope = typename PolytopeOf<kind.value>::type;
        for (index i = 0; i < u.rows; ++i) {
            decode<Polytope>(decoding, u.row(i), u.cols, uniforms.row(i), plays.row(i),
                             plays.cols, means.row(i), memory);
            if (stops(pulse, steps(u.cols))) return;
        }
    });
}

}  // namespace

extern const RowKernels row_kernels;
const RowKernels row_kernels{exponential, predict_rows, respond_rows, nearest_rows, decode_rows};

}  // namespace skb::SKB_LEVEL
