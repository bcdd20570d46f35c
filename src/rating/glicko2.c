/*
 * glicko2.c - see glicko2.h; the steps have the numbers of the paper.
 */
#include "rating/glicko2.h"

#include <math.h>

#define SCALE 173.7178

double glicko2_g(double phi)
{
    return 1.0 / sqrt(1.0 + 3.0 * phi * phi / (M_PI * M_PI));
}

double glicko2_expected(double mu, double mu_opponent, double phi_opponent)
{
    return 1.0 / (1.0 + exp(-glicko2_g(phi_opponent) * (mu - mu_opponent)));
}

typedef struct {
    double a, delta2, phi2, v, tau2;
} Function;

static double function_at(const Function *f, double x)
{
    double ex = exp(x), base = f->phi2 + f->v + ex;

    return ex * (f->delta2 - base) / (2.0 * base * base) - (x - f->a) / f->tau2;
}

/* Step 5: the root lies between A and B; the Illinois method halves the value that stays. */
double glicko2_volatility(double sigma, double delta, double phi, double v, double tau)
{
    Function f = {log(sigma * sigma), delta * delta, phi * phi, v, tau * tau};
    double   a = f.a, b, fa, fb;

    if (f.delta2 > f.phi2 + v) {
        b = log(f.delta2 - f.phi2 - v);
    } else {
        int k = 1;

        while (k < GLICKO2_STEPS_MAX && function_at(&f, f.a - k * tau) < 0)
            k++;
        b = f.a - k * tau;
    }
    fa = function_at(&f, a);
    fb = function_at(&f, b);
    for (int step = 0; step < GLICKO2_STEPS_MAX && fabs(b - a) > GLICKO2_TOLERANCE; step++) {
        double c  = a + (a - b) * fa / (fb - fa);
        double fc = function_at(&f, c);

        if (fc * fb <= 0) {
            a  = b;
            fa = fb;
        } else {
            fa /= 2.0;
        }
        b  = c;
        fb = fc;
    }
    return exp(a / 2.0);
}

double glicko2_idle(double deviation, double volatility, double periods)
{
    double phi = deviation / SCALE;

    return periods > 0 ? SCALE * sqrt(phi * phi + periods * volatility * volatility) : deviation;
}

Glicko2 glicko2_update(Glicko2 player, const Glicko2Game *games, int count, double tau)
{
    double mu = (player.rating - GLICKO2_RATING) / SCALE, phi = player.deviation / SCALE;
    double information = 0, surprise = 0, v, sigma, phi_star, phi_new;

    if (count == 0) {
        player.deviation = glicko2_idle(player.deviation, player.volatility, 1);
        return player;
    }
    for (int i = 0; i < count; i++) {
        double phi_j = games[i].deviation / SCALE, g = glicko2_g(phi_j);
        double e = glicko2_expected(mu, (games[i].rating - GLICKO2_RATING) / SCALE, phi_j);

        information += g * g * e * (1.0 - e);
        surprise += g * (games[i].score - e);
    }
    /* Thousands of points apart the result carries no information: 1 - e is 0 in floating point. */
    v        = 1.0 / fmax(information, 1e-12);
    sigma    = glicko2_volatility(player.volatility, v * surprise, phi, v, tau);
    phi_star = sqrt(phi * phi + sigma * sigma);
    phi_new  = 1.0 / sqrt(1.0 / (phi_star * phi_star) + 1.0 / v);
    return (Glicko2){GLICKO2_RATING + SCALE * (mu + phi_new * phi_new * surprise), SCALE * phi_new, sigma};
}
