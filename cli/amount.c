/* SPDX-License-Identifier: MIT */
#include "amount.h"

#include <stdio.h>

struct amount amount_of(double value, double step)
{
    static const char units[] = " KMGTPE";
    struct amount amount;
    int unit = 0;
    for (; value >= 999.5 && unit < 6; unit++)
        value /= step;
    if (unit == 0)
        snprintf(amount.text, sizeof amount.text, "%.0f", value);
    else
        snprintf(amount.text, sizeof amount.text, "%.*f%c", value < 99.95 ? 1 : 0, value,
                 units[unit]);
    return amount;
}

struct amount bytes_of(uint64_t value)
{
    return amount_of((double)value, 1024);
}

struct amount count_of(double value)
{
    return amount_of(value, 1000);
}
