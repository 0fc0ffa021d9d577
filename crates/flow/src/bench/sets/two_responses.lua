local parts, from = {}, 1
local text = output .. "******"
while true do
  local at = text:find("******", from, true)
  if not at then break end
  parts[#parts + 1] = text:sub(from, at - 1)
  from = at + 6
end
local filled, blank = {}, false
for i, part in ipairs(parts) do
  local trimmed = part:match("^%s*(.-)%s*$")
  if trimmed ~= "" then filled[#filled + 1] = trimmed
  elseif i ~= 1 and i ~= #parts then blank = true end
end
if blank then return { valid = false, score = 0, errors = { { message = "there is nothing between two dividers" } } } end
if #filled ~= 2 then return { valid = false, score = 0, errors = { { message = "there are " .. #filled .. " responses instead of two, separated by ******" } } } end
if filled[1] == filled[2] then return { valid = false, score = 0.5, errors = { { message = "both responses are the same" } } } end
return { valid = true, score = 1 }
