/* The four elements of Kikuuwe et al. 2006 in plain C: what the kernels are measured against.

   The same equations in the same order as haptics/elements/kernels.py and haptics/friction/kernels.py, so that results
   can be compared to the last digits, and the same results stored at every step. Nothing is decided within a step that
   is known beforehand: every pair of model and law gets a loop of its own, and its state stays in registers. The
   compiler is told that element, input and results do not overlap (restrict).

   Each pair has a second loop, which calls its step by its address: what C pays for what the kernels do, namely that
   the loop is compiled before anybody knows which element will be put into it. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef double level_function(double speed, const double *parameters);

struct element {
    double T, M, K, B, Z;
    double law[4];
    level_function *level;
    double v[2], e[2];
};

struct row {
    double output[2], friction_force[2], displacement[2], velocity[2];
    int64_t sticking;
};

enum model { MODEL_A, MODEL_B, MODEL_C, MODEL_D };
enum law { COULOMB, STRIBECK, CUSTOM };

#define INLINE static inline __attribute__((always_inline))

/* --- laws: speed s of sliding, s + Z g(s) = r --------------------------------------------------------------------- */

/* t + q (exp(-t) - 1) = d, that is t = x + W0(-q exp(-x)) with x = d + q and Lambert's W; Halley's iteration. */
static double stribeck_ratio(double d, double q)
{
    double p = 1.0 - q;
    double t = p > 0.0 ? fmax(2.0 * d / (p + sqrt(p * p + 2.0 * q * d)), d) : d + q;
    for (int i = 0; i < 50; i++) {
        double decay = expm1(-t);
        double h = t + q * decay - d;
        double curvature = q * (1.0 + decay);
        double slope = 1.0 - curvature;
        double step = h / (slope - 0.5 * curvature * h / slope);
        t -= step;
        if (fabs(step) <= 1e-6 * t)
            break;
    }
    return t;
}

/* A custom law, as somebody would write it; called by its address like one written in Python. */
double rubber(double speed, const double *p)
{
    return p[2] + (p[1] - p[2]) / (1.0 + speed / p[3]);
}

/* Chandrupatla's search (1997) between rest and r, for a law of which only the level is known. */
static double bracketed(const struct element *p, double r)
{
    double Z = p->Z;
    double a = r, b = 0.0;
    double fa = a + Z * p->level(a, p->law) - r, fb = b + Z * p->level(b, p->law) - r;
    double c = a, fc = fa, t = 0.5;
    for (int i = 0; i < 200; i++) {
        double s = a + t * (b - a);
        double fs = s + Z * p->level(s, p->law) - r;
        if ((fs < 0.0) == (fa < 0.0)) {
            c = a, fc = fa;
        } else {
            c = b, fc = fb;
            b = a, fb = fa;
        }
        a = s, fa = fs;
        double best = fabs(fa) < fabs(fb) ? a : b;
        double f_best = fabs(fa) < fabs(fb) ? fa : fb;
        double tolerance = 2.3e-16 * fabs(best);
        if (f_best == 0.0 || fabs(b - a) <= 2.0 * tolerance + 1e-300)
            return best;
        double xi = (a - b) / (c - b), phi = (fa - fb) / (fc - fb);
        if (phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi)
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb);
        else
            t = 0.5;
        double margin = tolerance / fabs(b - a);
        t = fmin(fmax(t, margin), 1.0 - margin);
    }
    return a;
}

INLINE double norm(const double x[2])
{
    double n = x[0] * x[0] + x[1] * x[1];
    return 1e-280 < n && n < 1e280 ? sqrt(n) : hypot(x[0], x[1]);
}

/* f = Phi_Z(x) and v = x - Z f; (52), (53) and the exact solutions of the other laws. Returns whether it sticks. */
INLINE int implicit_force(const struct element *p, enum law law, const double x[2], double f[2], double v[2])
{
    const double *l = p->law;
    double Z = p->Z, r = norm(x), g, s;
    if (r <= Z * l[0]) {
        for (int i = 0; i < 2; i++)
            f[i] = x[i] / Z, v[i] = 0.0;
        return 1;
    }
    if (law == COULOMB) {
        g = (l[0] + l[1] * r) / (1.0 + Z * l[1]);
        s = (r - Z * l[0]) / (1.0 + Z * l[1]);
    } else if (law == STRIBECK) {
        double a = 1.0 + Z * l[3], q = Z * (l[0] - l[1]) / (a * l[2]);
        s = l[2] * stribeck_ratio((r - Z * l[0]) / (a * l[2]), q);
        g = l[1] + (l[0] - l[1]) * exp(-s / l[2]) + l[3] * s;
    } else {
        s = bracketed(p, r);
        g = p->level(s, l);
    }
    for (int i = 0; i < 2; i++)
        f[i] = g * (x[i] / r), v[i] = s * (x[i] / r);
    return 0;
}

/* --- elements: one step of p under the input x ------------------------------------------------------------------- */

INLINE void step(struct element *restrict p, enum model model, enum law law, const double *restrict x,
                 struct row *restrict row)
{
    double T = p->T, M = p->M, K = p->K, B = p->B, *v = p->v, *e = p->e;
    double coupling = T * B + T * T * K, stretch = K / (B + T * K);
    double y[2], f[2], s[2];
    for (int i = 0; i < 2; i++) {
        if (model == MODEL_A)
            y[i] = v[i] + T * x[i] / M;
        else if (model == MODEL_B)
            y[i] = (coupling * x[i] + T * K * e[i] + M * v[i]) / (M + T * B + T * T * K);
        else if (model == MODEL_C)
            y[i] = x[i] + stretch * e[i];
        else
            y[i] = v[i] + T * x[i] / M + stretch * e[i];
    }
    int sticking = implicit_force(p, law, y, f, s);
    for (int i = 0; i < 2; i++) {
        if (model == MODEL_A) { /* (26) */
            row->output[i] = v[i] = s[i];
        } else if (model == MODEL_B) { /* (36) */
            v[i] = s[i];
            e[i] += T * (x[i] - v[i]);
            row->output[i] = K * e[i] + B * (x[i] - v[i]);
        } else { /* (38), (45) */
            double u = x[i];
            if (model == MODEL_D)
                u = v[i] += T * (x[i] - f[i]) / M;
            e[i] = sticking ? e[i] + T * u : (B * e[i] + T * f[i]) / (B + T * K);
            row->output[i] = model == MODEL_D ? u : f[i];
        }
        row->friction_force[i] = f[i];
        row->displacement[i] = e[i];
        row->velocity[i] = s[i];
    }
    row->sticking = sticking;
}

/* --- loops: n steps of one element, which itself is left as it was ------------------------------------------------ */

typedef void step_function(struct element *p, const double *x, struct row *row);

#define LOOP(name, model, law)                                                                                        \
    void name(const struct element *start, const double *inputs, struct row *rows, size_t n)                          \
    {                                                                                                                 \
        struct element p = *start;                                                                                    \
        for (size_t k = 0; k < n; k++)                                                                                \
            step(&p, model, law, inputs + 2 * k, rows + k);                                                           \
    }                                                                                                                 \
    static void name##_step(struct element *restrict p, const double *restrict x, struct row *restrict row)           \
    {                                                                                                                 \
        step(p, model, law, x, row);                                                                                  \
    }                                                                                                                 \
    void name##_by_address(const struct element *start, const double *inputs, struct row *rows, size_t n)             \
    {                                                                                                                 \
        step_function *volatile address = name##_step; /* volatile: or the compiler would see through it */           \
        struct element p = *start;                                                                                    \
        for (size_t k = 0; k < n; k++)                                                                                \
            address(&p, inputs + 2 * k, rows + k);                                                                    \
    }

LOOP(a_coulomb, MODEL_A, COULOMB)
LOOP(b_coulomb, MODEL_B, COULOMB)
LOOP(c_coulomb, MODEL_C, COULOMB)
LOOP(d_coulomb, MODEL_D, COULOMB)
LOOP(a_stribeck, MODEL_A, STRIBECK)
LOOP(b_stribeck, MODEL_B, STRIBECK)
LOOP(c_stribeck, MODEL_C, STRIBECK)
LOOP(d_stribeck, MODEL_D, STRIBECK)
LOOP(a_custom, MODEL_A, CUSTOM)
LOOP(b_custom, MODEL_B, CUSTOM)
LOOP(c_custom, MODEL_C, CUSTOM)
LOOP(d_custom, MODEL_D, CUSTOM)

/* One step of each of n elements of model C with Coulomb's law, all under the same velocity. */
void contacts(struct element *elements, const double *velocity, struct row *rows, size_t n)
{
    for (size_t k = 0; k < n; k++)
        step(elements + k, MODEL_C, COULOMB, velocity, rows + k);
}
