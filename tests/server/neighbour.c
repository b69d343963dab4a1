/* Another module beside rlock, for tests: it changes keys when it hears an event, and uses rlock's
 * commands from a thread of its own. The few functions of the API that it needs are declared here. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef int (*Command)(RedisModuleCtx *, RedisModuleString **, int);
typedef int (*OnKey)(RedisModuleCtx *, int, const char *, RedisModuleString *);

static int (*GetApi)(const char *, void *);
static void (*SetModuleAttribs)(RedisModuleCtx *, const char *, int, int);
static int (*CreateCommand)(RedisModuleCtx *, const char *, Command, const char *, int, int, int);
static int (*SubscribeToKeyspaceEvents)(RedisModuleCtx *, int, OnKey);
static RedisModuleCallReply *(*Call)(RedisModuleCtx *, const char *, const char *, ...);
static void (*FreeCallReply)(RedisModuleCallReply *);
static const char *(*StringPtrLen)(const RedisModuleString *, size_t *);
static int (*ReplyWithLongLong)(RedisModuleCtx *, long long);
static int (*StringToLongLong)(const RedisModuleString *, long long *);
static RedisModuleCtx *(*GetThreadSafeContext)(void *);
static void (*ThreadSafeContextLock)(RedisModuleCtx *);
static void (*ThreadSafeContextUnlock)(RedisModuleCtx *);
static void (*FreeThreadSafeContext)(RedisModuleCtx *);

/* GENERIC, HASH and MODULE. */
#define CLASSES ((1 << 2) | (1 << 5) | (1 << 13))

static void call(RedisModuleCtx *ctx, const char *command, const char *key) {
    RedisModuleCallReply *reply = Call(ctx, command, "c!", key);
    if (reply) FreeCallReply(reply);
}

/* Whatever happens to "trigger": "victim" is deleted, and "trigger" itself where it is there. */
static int on_key(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key) {
    static int busy = 0;
    size_t length;
    const char *name = StringPtrLen(key, &length);
    (void)type, (void)event;
    if (busy || length != 7 || memcmp(name, "trigger", 7)) return 0;
    busy = 1;
    call(ctx, "DEL", "victim");
    busy = 0;
    return 0;
}

static long long rounds, done;

static void *take_and_release(void *unused) {
    RedisModuleCtx *ctx = GetThreadSafeContext(NULL);
    for (long long i = 0; i < rounds; i++) {
        RedisModuleCallReply *reply;
        char key[32];
        snprintf(key, sizeof key, "shared:%lld", i % 8);
        ThreadSafeContextLock(ctx);
        reply = Call(ctx, "RLOCK.ACQUIRE", "!ccc", key, "thread", "1000");
        if (reply) FreeCallReply(reply);
        reply = Call(ctx, "RLOCK.RELEASE", "!cc", key, "thread");
        if (reply) FreeCallReply(reply);
        done = i + 1;
        ThreadSafeContextUnlock(ctx);
    }
    FreeThreadSafeContext(ctx);
    return unused;
}

static int start(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    pthread_t thread;
    if (argc != 2 || StringToLongLong(argv[1], &rounds)) return 1;
    done = 0;
    if (!pthread_create(&thread, NULL, take_and_release, NULL)) pthread_detach(thread);
    return ReplyWithLongLong(ctx, rounds);
}

static int count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ReplyWithLongLong(ctx, done);
}

#define GET(name) GetApi("RedisModule_" #name, (void *)&name)

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    GetApi = (int (*)(const char *, void *))((void **)ctx)[0];
    GET(SetModuleAttribs), GET(CreateCommand), GET(SubscribeToKeyspaceEvents), GET(Call);
    GET(FreeCallReply), GET(StringPtrLen), GET(ReplyWithLongLong), GET(StringToLongLong);
    GET(GetThreadSafeContext), GET(ThreadSafeContextLock), GET(ThreadSafeContextUnlock);
    GET(FreeThreadSafeContext);
    SetModuleAttribs(ctx, "neighbour", 1, 1);
    return CreateCommand(ctx, "neighbour.start", start, "", 0, 0, 0) ||
           CreateCommand(ctx, "neighbour.count", count, "", 0, 0, 0) ||
           SubscribeToKeyspaceEvents(ctx, CLASSES, on_key);
}
