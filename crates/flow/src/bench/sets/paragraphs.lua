local parts, from = {}, 1
local text = output .. "***"
while true do
  local at = text:find("***", from, true)
  if not at then break end
  parts[#parts + 1] = text:sub(from, at - 1)
  from = at + 3
end
local count, blank = 0, false
for i, part in ipairs(parts) do
  if part:find("%S") then count = count + 1
  elseif i ~= 1 and i ~= #parts then blank = true end
end
if blank then return { valid = false, score = 0, errors = { { message = "there is nothing between two dividers" } } } end
if count == wanted then return { valid = true, score = 1 } end
return { valid = false, score = math.min(count, wanted) / math.max(count, wanted), errors = { { message = "there are " .. count .. " paragraphs instead of " .. wanted .. ", separated by ***" } } }
