/* The text for Prometheus: both formats, whatever names there are. */
#include "export/openmetrics.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;

static struct openmetrics_target target_of(int pid, const char *exe)
{
	return (struct openmetrics_target){
		.pid = pid, .uid = 1000, .exe = exe, .engine = "int3", .traced = true,
		.exact = true, .crash_safe = false, .since_ns = 1700000000123456789ULL, .stops = 9, .held_us = 2500001,
		.counters = { .live_bytes = UINT64_MAX, .live_blocks = 3, .peak_bytes = 4, .allocations = 5, .frees = 2,
			      .lost_events = 7 },
	};
}

static void make(const struct openmetrics *metrics, enum openmetrics_format format)
{
	size_t len;

	free(text);
	text = NULL;
	ck_assert_int_eq(openmetrics_write(metrics, format, &text, &len), 0);
	ck_assert_uint_eq(strlen(text), len);
}

static void must_hold(const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in\n%.3000s", part, text);
}

static void must_not_hold(const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is in\n%.3000s", part, text);
}

static unsigned count(const char *part)
{
	unsigned number = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		number++;
	return number;
}

START_TEST(openmetrics_has_families_with_units_and_an_end)
{
	struct openmetrics_target target = target_of(42, "/usr/bin/redis-server");
	struct openmetrics metrics = { .version = "1.2", .targets = &target, .target_count = 1, .snapshots = 8 };

	make(&metrics, OPENMETRICS_1_0);
	must_hold("# TYPE allocwatch_live_bytes gauge\n# UNIT allocwatch_live_bytes bytes\n# HELP allocwatch_live_bytes "
		  "Bytes that are allocated.\nallocwatch_live_bytes{pid=\"42\",program=\"redis-server\"} "
		  "18446744073709551615\n");
	must_hold("# TYPE allocwatch_allocations counter\n");
	must_hold("allocwatch_allocations_total{pid=\"42\",program=\"redis-server\"} 5\n");
	must_hold("# TYPE allocwatch_held_seconds counter\n# UNIT allocwatch_held_seconds seconds\n");
	must_hold("allocwatch_held_seconds_total{pid=\"42\",program=\"redis-server\"} 2.500001\n");
	must_hold("allocwatch_since_seconds{pid=\"42\",program=\"redis-server\"} 1700000000.123456789\n");
	must_hold("# TYPE allocwatch_build info\n");
	must_hold("allocwatch_build_info{version=\"1.2\"} 1\n");
	must_hold("allocwatch_exact{pid=\"42\",program=\"redis-server\"} 1\n");
	must_hold("allocwatch_crash_safe{pid=\"42\",program=\"redis-server\"} 0\n");
	must_hold("allocwatch_lost_events_total{pid=\"42\",program=\"redis-server\"} 7\n");
	must_hold("allocwatch_snapshots 8\n");
	ck_assert_uint_eq(count("# EOF\n"), 1);
	ck_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
	/* Who sees a part of the daemon learns nothing of the rest. */
	must_not_hold("allocwatch_clients");
	metrics.whole = true;
	make(&metrics, OPENMETRICS_1_0);
	must_hold("allocwatch_clients 0\n");
}
END_TEST

START_TEST(the_older_format_names_samples_and_knows_no_information)
{
	struct openmetrics_target target = target_of(42, "x");
	const struct openmetrics metrics = { .version = "1.2", .targets = &target, .target_count = 1, .whole = true };

	make(&metrics, OPENMETRICS_PROMETHEUS);
	must_hold("# TYPE allocwatch_allocations_total counter\n# HELP allocwatch_allocations_total ");
	must_hold("# TYPE allocwatch_build_info gauge\n# HELP allocwatch_build_info ");
	must_hold("# TYPE allocwatch_daemon_cpu_seconds_total counter\n");
	must_not_hold("# UNIT");
	must_not_hold("# EOF");
	must_not_hold(" info\n");
}
END_TEST

START_TEST(names_are_escaped_and_harmless)
{
	const struct openmetrics_group groups[] = {
		{ "/a\"b\\c\nd.c", 7, 100, 1 }, { "/x\xff\x1b[2Jy", 0, 50, 2 }, { "/\xc3\xa4\xe2\x82\xac.c", 1, 1, 1 },
	};
	struct openmetrics_target target = target_of(1, "co\"m\\m\n");
	const struct openmetrics metrics = { .version = "v", .targets = &target, .target_count = 1 };

	target.groups = groups;
	target.group_count = 3;
	target.groups_ns = 5;
	make(&metrics, OPENMETRICS_1_0);
	must_hold("{pid=\"1\",program=\"co\\\"m\\\\m\\n\",file=\"/a\\\"b\\\\c\\nd.c\",line=\"7\"} 100\n");
	must_hold("file=\"/x\\\\xff\\\\x1b[2Jy\",line=\"0\"} 50\n");
	must_hold("file=\"/\xc3\xa4\xe2\x82\xac.c\",line=\"1\"} 1\n");
	must_not_hold("\x1b");
	must_hold("allocwatch_groups_time_seconds{pid=\"1\",program=\"co\\\"m\\\\m\\n\"} 0.000000005\n");
}
END_TEST

START_TEST(long_names_are_cut_and_what_looks_the_same_is_one)
{
	char names[3][1200] = { 0 };
	struct openmetrics_group groups[3];
	struct openmetrics_target target = target_of(1, names[2]);
	const struct openmetrics metrics = { .version = "v", .targets = &target, .target_count = 1 };

	for (int i = 0; i < 3; i++) {
		memset(names[i], i == 0 ? 'a' : 'b', sizeof(names[i]));
		for (size_t k = 0; k < 300; k++)
			memcpy(names[i] + 297 + 3 * k, "\xe2\x82\xac", 3);
		strcpy(names[i] + 297 + 900, "zz");
		groups[i] = (struct openmetrics_group){ names[i], 5, 10 + (uint64_t)i, 1 };
	}
	target.groups = groups;
	target.group_count = 3;
	make(&metrics, OPENMETRICS_1_0);
	ck_assert_uint_eq(count("allocwatch_group_live_bytes{"), 1);
	must_hold("file=\"...\xe2\x82\xac\xe2\x82\xac");
	must_hold("\xe2\x82\xaczz\",line=\"5\"} 33\n");
	must_hold("program=\"bbbbb");
	must_hold("bbb...\",");
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		ck_assert_uint_lt((size_t)(strchr(line, '\n') - line), 4 * 4 * OPENMETRICS_LABEL_MAX);
}
END_TEST

START_TEST(the_families_of_many_targets_stay_together)
{
	struct openmetrics_target targets[3] = { target_of(1, "a"), target_of(2, "b"), target_of(3, "a") };
	const struct openmetrics_domain domains[] = { { "malloc", 1, 2 }, { "python", 3, 4 } };
	const struct openmetrics metrics = { .version = "v", .targets = targets, .target_count = 3 };
	char family[64] = "", ended[200][64];
	size_t families = 0;

	targets[1].domains = domains;
	targets[1].domain_count = 2;
	make(&metrics, OPENMETRICS_1_0);
	must_hold("allocwatch_domain_live_bytes{pid=\"2\",program=\"b\",domain=\"python\"} 3\n");
	/* No family begins twice, and each sample is of the one that has begun. */
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, "# TYPE ", 7) == 0) {
			ck_assert_int_eq(sscanf(line + 7, "%63s", family), 1);
			for (size_t i = 0; i < families; i++)
				ck_assert_str_ne(ended[i], family);
			strcpy(ended[families++], family);
		} else if (*line != '#') {
			ck_assert_int_eq(strncmp(line, family, strlen(family)), 0);
		}
	}
	ck_assert_uint_gt(families, 25);
	ck_assert_uint_eq(count("allocwatch_live_bytes{"), 3);
}
END_TEST

START_TEST(no_target_is_a_whole_text_too)
{
	const struct openmetrics metrics = { .version = "v" };

	make(&metrics, OPENMETRICS_1_0);
	must_hold("allocwatch_targets 0\n");
	must_hold("# EOF\n");
	must_not_hold("pid=");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("openmetrics");
	TCase *t = tcase_create("texts");
	SRunner *runner;
	int failed;

	tcase_add_test(t, openmetrics_has_families_with_units_and_an_end);
	tcase_add_test(t, the_older_format_names_samples_and_knows_no_information);
	tcase_add_test(t, names_are_escaped_and_harmless);
	tcase_add_test(t, long_names_are_cut_and_what_looks_the_same_is_one);
	tcase_add_test(t, the_families_of_many_targets_stay_together);
	tcase_add_test(t, no_target_is_a_whole_text_too);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	free(text);
	return failed > 0;
}
