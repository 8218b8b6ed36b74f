/* Making the folder of tests safe: known files of earlier calls go, strangers are refused. */
#define _GNU_SOURCE
#include "task/unittest/folder.h"
#include "task/unittest/module.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a run of jprof, and of pytest after it, leaves in the folder. */
static const struct trace {
    const char *pattern, *mark; /* a file of ours begins with the mark */
    enum { REMOVE, KEEP, REMOVE_FOLDER } action;
} traces[] = {
    {"test_*.py", MODULE_MARK, REMOVE},    {"conftest.py", CONFTEST_MARK, REMOVE},
    {"pytest.ini", SETTINGS_MARK, REMOVE}, {"*.csv", "", KEEP},
    {"__pycache__", "", REMOVE_FOLDER},   /* compiled code, perhaps of somebody else's sources */
    {".pytest_cache", "", REMOVE_FOLDER}, /* names of tests; pytest writes through links in it */
};

static bool begins_with(int folder, const char *name, const char *mark)
{
    char head[sizeof CONFTEST_MARK + sizeof MODULE_MARK + sizeof SETTINGS_MARK];
    size_t length = strlen(mark);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool same =
        fd >= 0 && read(fd, head, length) == (ssize_t)length && memcmp(head, mark, length) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

static const struct trace *known_trace(int folder, const char *name)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW))
        return NULL;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        const struct trace *trace = &traces[i];
        if (fnmatch(trace->pattern, name, 0) != 0)
            continue;
        if (trace->action == REMOVE_FOLDER
                ? S_ISDIR(info.st_mode)
                : S_ISREG(info.st_mode) && begins_with(folder, name, trace->mark))
            return trace;
    }
    return NULL;
}

/* Removes a folder with all that is in it; what cannot be removed leaves it where it is. */
static bool remove_folder(int parent, const char *name, unsigned depth)
{
    enum { MAX_DEPTH = 16 };
    int fd = depth == MAX_DEPTH
                 ? -1
                 : openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0))
            remove_folder(fd, entry->d_name, depth + 1);
    closedir(dir);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

enum step { LOOK, TIDY };

/* Goes through the folder: whether it holds only what is known, then removes what is old. */
static enum plumb_code walk(const char *folder, enum step step, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return plumb_fail(err, PLUMB_E_IO, "cannot read the folder %s: %s", folder,
                          strerror(errno));
    for (const struct dirent *entry; !code && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        const struct trace *trace = known_trace(dirfd(dir), name);
        bool fine = trace != NULL;
        if (trace && step == TIDY && trace->action == REMOVE)
            fine = unlinkat(dirfd(dir), name, 0) == 0;
        else if (trace && step == TIDY && trace->action == REMOVE_FOLDER)
            fine = remove_folder(dirfd(dir), name, 0);
        if (!fine)
            code =
                plumb_fail(err, PLUMB_E_ARG,
                           "%s holds %s, which plumb did not write and pytest might run; move it "
                           "away, or name another folder with -o",
                           folder, name);
    }
    closedir(dir);
    return code;
}

/* Of several folders of tests pytest also runs and reads what lies beside and above them. There
 * that is the work of whoever made the dump. */
static enum plumb_code look_around(const char *tests, struct plumb_error *err)
{
    static const char *const names[] = {"conftest.py", "pytest.ini", ".pytest.ini",
                                        "tox.ini",     "setup.cfg",  "pyproject.toml"};
    for (int up = 0; up < 2; up++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            char *path = NULL;
            if (asprintf(&path, "%s/..%s/%s", tests, up ? "/.." : "", names[k]) < 0)
                return plumb_no_memory(err);
            const bool there = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
            free(path);
            if (there)
                return plumb_fail(err, PLUMB_E_ARG,
                                  "the folder %s holds %s, which pytest might use; move it away, "
                                  "or name another place for the tests with -o",
                                  up ? "above that of the dump" : "of the dump", names[k]);
        }
    return PLUMB_OK;
}

enum plumb_code tests_folder(char **folder, const char *wanted, const char *dump,
                             struct plumb_error *err)
{
    const char *slash = strrchr(dump, '/');
    int length = wanted
                     ? asprintf(folder, "%s", wanted)
                     : asprintf(folder, "%.*spytests", slash ? (int)(slash - dump) + 1 : 0, dump);
    if (length < 0) {
        *folder = NULL;
        return plumb_no_memory(err);
    }
    struct stat info;
    if (mkdir(*folder, 0777) && errno != EEXIST)
        return plumb_fail(err, PLUMB_E_IO, "cannot make the folder %s: %s", *folder,
                          strerror(errno));
    /* A link that the caller names is as good as what it points to; one beside a dump may be the
     * work of whoever made the dump. */
    if ((wanted ? stat : lstat)(*folder, &info) || !S_ISDIR(info.st_mode))
        return plumb_fail(err, PLUMB_E_ARG,
                          S_ISLNK(info.st_mode) ? "%s is a link; name a folder with -o"
                                                : "%s is not a folder",
                          *folder);
    enum plumb_code code = wanted ? PLUMB_OK : look_around(*folder, err);
    if (!code)
        code = walk(*folder, LOOK, err);
    return code ? code : walk(*folder, TIDY, err);
}
