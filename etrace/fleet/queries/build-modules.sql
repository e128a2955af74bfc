-- SPDX-License-Identifier: Apache-2.0
-- linked modules of a build
-- BUILD: id of the build
SELECT m.path, m.kind, m.size_bytes, m.n_inputs, m.copy_of
FROM modules m
WHERE m.build = :build
ORDER BY m.path
