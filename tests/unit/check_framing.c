/* Varlink's framing and the blocking client against peers that do not keep to the rules. */
#include "varlink/client.h"
#include "varlink/framing.h"
#include "varlink/interface.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct varlink_input input;

static void setup(void)
{
	varlink_input_init(&input);
}

static void teardown(void)
{
	varlink_input_fini(&input);
}

static void feed(const void *data, size_t len)
{
	while (len > 0) {
		size_t space;
		char *into = varlink_input_space(&input, &space);

		ck_assert_ptr_nonnull(into);
		if (space > len)
			space = len;
		memcpy(into, data, space);
		varlink_input_received(&input, space);
		data = (const char *)data + space;
		len -= space;
	}
}

static void expect_number(json_int_t n)
{
	json_t *message;

	ck_assert_int_eq(varlink_input_next(&input, &message), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(message, "n")), n);
	json_decref(message);
}

START_TEST(messages_are_found_however_the_stream_is_cut)
{
	static const char stream[] = "{\"n\":1}\0{\"n\":2}\0{\"n\":3}";
	json_t *message;

	for (size_t cut = 0; cut <= sizeof(stream); cut++) {
		size_t got = 0;

		for (size_t from = 0; from < sizeof(stream); from = from < cut ? cut : sizeof(stream)) {
			feed(stream + from, (from < cut ? cut : sizeof(stream)) - from);
			while (varlink_input_next(&input, &message) == 1) {
				got++;
				ck_assert_int_eq(json_integer_value(json_object_get(message, "n")),
						 (json_int_t)got);
				json_decref(message);
			}
		}
		ck_assert_uint_eq(got, 3);
		ck_assert(!varlink_input_is_partial(&input));
	}
}
END_TEST

START_TEST(single_bytes_make_messages_too)
{
	static const char stream[] = "{\"n\":7}";
	json_t *message;

	for (size_t i = 0; i < sizeof(stream) - 1; i++) {
		feed(stream + i, 1);
		ck_assert_int_eq(varlink_input_next(&input, &message), 0);
		ck_assert(varlink_input_is_partial(&input));
	}
	feed("", 1);
	expect_number(7);
}
END_TEST

START_TEST(what_is_no_json_object_is_a_protocol_error)
{
	static const char *const bad[] = { "", "1", "[]", "null", "\"x\"", "{", "{]", "{\"a\":1}x",
					   "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}", "{a:1}",
					   "{\"a\":1e999}", "{\"a\":123456789012345678901234567890}" };
	json_t *message;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		teardown();
		feed(bad[i], strlen(bad[i]) + 1);
		ck_assert_int_eq(varlink_input_next(&input, &message), -EPROTO);
	}
}
END_TEST

START_TEST(deep_nesting_is_refused_without_deep_recursion)
{
	size_t depth = 500000;
	char *text = malloc(depth + 8);
	json_t *message;

	strcpy(text, "{\"a\":");
	memset(text + 5, '[', depth);
	text[5 + depth] = '\0';
	feed(text, 5 + depth + 1);
	ck_assert_int_eq(varlink_input_next(&input, &message), -EPROTO);
	free(text);
}
END_TEST

static void feed_message_of(size_t len)
{
	char *text = malloc(len);

	memset(text, ' ', len);
	memcpy(text, "{\"n\":5}", 7);
	text[len - 1] = '\0';
	feed(text, len);
	free(text);
}

START_TEST(a_message_of_exactly_the_limit_passes_and_a_longer_one_does_not)
{
	json_t *message;

	feed_message_of(VARLINK_MESSAGE_MAX);
	expect_number(5);
	feed_message_of(VARLINK_MESSAGE_MAX + 1);
	ck_assert_int_eq(varlink_input_next(&input, &message), -EMSGSIZE);
}
END_TEST

START_TEST(an_endless_message_is_refused_at_the_limit)
{
	char chunk[4096];
	size_t sent = 0;
	json_t *message;
	int r;

	memset(chunk, ' ', sizeof(chunk));
	do {
		feed(chunk, sizeof(chunk));
		sent += sizeof(chunk);
		r = varlink_input_next(&input, &message);
	} while (r == 0 && sent < 2 * VARLINK_MESSAGE_MAX);
	ck_assert_int_eq(r, -EMSGSIZE);
	ck_assert_uint_eq(sent, VARLINK_MESSAGE_MAX);
	ck_assert_uint_le(input.space, 2 * VARLINK_MESSAGE_MAX);
}
END_TEST

START_TEST(encoding_refuses_what_does_not_fit)
{
	char *big = malloc(VARLINK_MESSAGE_MAX), *text;
	json_t *message;
	size_t len, payload = VARLINK_MESSAGE_MAX - sizeof("{\"n\":\"\"}");

	memset(big, 'x', VARLINK_MESSAGE_MAX);
	message = json_pack("{s:s%}", "n", big, payload);
	ck_assert_int_eq(varlink_encode(message, &text, &len), 0);
	ck_assert_uint_eq(len, VARLINK_MESSAGE_MAX);
	ck_assert_int_eq(text[len - 1], '\0');
	free(text);
	json_decref(message);
	message = json_pack("{s:s%}", "n", big, payload + 1);
	ck_assert_int_eq(varlink_encode(message, &text, &len), -EMSGSIZE);
	json_decref(message);
	free(big);
}
END_TEST

START_TEST(random_bytes_end_in_a_value_or_an_error)
{
	static const char alphabet[] = "{}[]\",:0123456789.eE+-truefalsn\\u \0\xc3\xa9\xff";
	int ended = 0;

	srandom(2);
	for (int round = 0; round < 20000; round++) {
		char text[64];
		json_t *message;
		int r;

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
		text[sizeof(text) - 1] = '\0';
		feed(text, sizeof(text));
		while ((r = varlink_input_next(&input, &message)) == 1)
			json_decref(message);
		ended += r < 0;
		teardown();
	}
	ck_assert_int_gt(ended, 19000);
}
END_TEST

/* --- the client against a server of one canned answer --- */

struct canned {
	int listener;
	const char *answer;
	size_t len;
	bool close_unread;
};

static void *serve(void *context)
{
	struct canned *canned = context;
	char buf[4096];
	int sock = accept(canned->listener, NULL, NULL);

	if (!canned->close_unread && read(sock, buf, sizeof(buf)) <= 0)
		abort();
	if (write(sock, canned->answer, canned->len) < 0)
		perror("write");
	close(sock);
	return NULL;
}

static char socket_path[64];

static int client_against(const char *answer, size_t len, bool close_unread, json_t **reply, json_t **error)
{
	struct canned canned = { .answer = answer, .len = len, .close_unread = close_unread };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct varlink_client *client;
	char folder[] = "/tmp/check_framing.XXXXXX";
	pthread_t thread;
	int r;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(socket_path, sizeof(socket_path), "%s/sock", folder);
	strcpy(address.sun_path, socket_path);
	canned.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(canned.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(canned.listener, 1), 0);
	pthread_create(&thread, NULL, serve, &canned);
	ck_assert_int_eq(varlink_client_open(socket_path, &client), 0);
	if (close_unread)
		pthread_join(thread, NULL);
	r = varlink_client_call(client, "List", NULL, reply, error);
	if (!close_unread)
		pthread_join(thread, NULL);
	varlink_client_close(client);
	close(canned.listener);
	unlink(socket_path);
	rmdir(folder);
	return r;
}

START_TEST(the_client_returns_parameters)
{
	static const char answer[] = "{\"parameters\":{\"daemon\":\"x\"}}";
	json_t *reply = NULL, *error = NULL;

	ck_assert_int_eq(client_against(answer, sizeof(answer), false, &reply, &error), 0);
	ck_assert_str_eq(json_string_value(json_object_get(reply, "daemon")), "x");
	json_decref(reply);
}
END_TEST

START_TEST(the_client_returns_typed_errors)
{
	static const char answer[] = "{\"error\":\"a.b.C\",\"parameters\":{\"pid\":3}}";
	json_t *reply = NULL, *error = NULL;

	ck_assert_int_eq(client_against(answer, sizeof(answer), false, &reply, &error), -EREMOTEIO);
	ck_assert_ptr_null(reply);
	ck_assert_str_eq(json_string_value(json_object_get(error, "error")), "a.b.C");
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(error, "parameters"), "pid")), 3);
	json_decref(error);
}
END_TEST

START_TEST(the_client_hears_why_it_was_refused)
{
	static const char answer[] = "{\"error\":\"a.b.LimitReached\"}";
	json_t *reply = NULL, *error = NULL;

	ck_assert_int_eq(client_against(answer, sizeof(answer), true, &reply, &error), -EREMOTEIO);
	ck_assert_str_eq(json_string_value(json_object_get(error, "error")), "a.b.LimitReached");
	json_decref(error);
}
END_TEST

START_TEST(the_client_survives_a_server_that_speaks_no_varlink)
{
	json_t *reply = NULL, *error = NULL;

	ck_assert_int_eq(client_against("", 0, false, &reply, &error), -EPIPE);
	ck_assert_int_eq(client_against("{\"para", 6, false, &reply, &error), -EPIPE);
	ck_assert_int_eq(client_against("HTTP/1.1 400\r\n", 15, false, &reply, &error), -EPROTO);
	ck_assert_int_eq(client_against("{\"parameters\":[]}", 18, false, &reply, &error), -EPROTO);
	ck_assert_int_eq(client_against("{\"continues\":true}", 19, false, &reply, &error), -EPROTO);
	ck_assert_ptr_null(reply);
	ck_assert_ptr_null(error);
}
END_TEST

START_TEST(the_client_does_not_wait_for_ever)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/check_framing.XXXXXX";
	json_t *reply = NULL, *error = NULL;
	struct varlink_client *client;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(varlink_client_open(address.sun_path, &client), 0);
	varlink_client_set_patience(client, 1);
	ck_assert_int_eq(varlink_client_call(client, "List", NULL, &reply, &error), -ETIMEDOUT);
	ck_assert_ptr_null(reply);
	ck_assert_ptr_null(error);
	varlink_client_close(client);
	close(listener);
	unlink(address.sun_path);
	rmdir(folder);
}
END_TEST

START_TEST(a_missing_socket_is_an_error)
{
	struct varlink_client *client;
	char long_path[300];

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(varlink_client_open("/nonexistent/socket", &client), -ENOENT);
	ck_assert_int_eq(varlink_client_open(long_path, &client), -ENAMETOOLONG);
}
END_TEST

START_TEST(the_interface_is_built_in_as_it_is_written)
{
	const char *own = varlink_interface_description("org.allocwatch.Tracer");

	ck_assert_ptr_nonnull(own);
	ck_assert_ptr_nonnull(strstr(own, "\ninterface org.allocwatch.Tracer\n"));
	ck_assert_ptr_nonnull(strstr(own, "\\xNN"));
	ck_assert_ptr_nonnull(strstr(own, "id reads \"s17\""));
	ck_assert_ptr_nonnull(strstr(own, "\nerror Failed (message: string)\n"));
	ck_assert_ptr_nonnull(varlink_interface_description("org.varlink.service"));
	ck_assert_ptr_null(varlink_interface_description("org.allocwatch.Tracer2"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("varlink");
	TCase *framing = tcase_create("framing"), *client = tcase_create("client");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(framing, setup, teardown);
	tcase_add_test(framing, messages_are_found_however_the_stream_is_cut);
	tcase_add_test(framing, single_bytes_make_messages_too);
	tcase_add_test(framing, what_is_no_json_object_is_a_protocol_error);
	tcase_add_test(framing, deep_nesting_is_refused_without_deep_recursion);
	tcase_add_test(framing, a_message_of_exactly_the_limit_passes_and_a_longer_one_does_not);
	tcase_add_test(framing, an_endless_message_is_refused_at_the_limit);
	tcase_add_test(framing, encoding_refuses_what_does_not_fit);
	tcase_add_test(framing, random_bytes_end_in_a_value_or_an_error);
	tcase_add_test(client, the_client_returns_parameters);
	tcase_add_test(client, the_client_returns_typed_errors);
	tcase_add_test(client, the_client_hears_why_it_was_refused);
	tcase_add_test(client, the_client_does_not_wait_for_ever);
	tcase_add_test(client, the_client_survives_a_server_that_speaks_no_varlink);
	tcase_add_test(client, a_missing_socket_is_an_error);
	tcase_add_test(client, the_interface_is_built_in_as_it_is_written);
	suite_add_tcase(suite, framing);
	suite_add_tcase(suite, client);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
